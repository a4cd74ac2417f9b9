"""Rights while an installation becomes another one: those that a running controller needs stay, and no others."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from click.testing import Result

from rollout_lws.cli.install import rbac
from rollout_lws.errors import ApiError, RolloutLwsError
from rollout_lws.objects.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    DEPLOYMENTS,
    NETWORK_POLICIES,
    ROLE_BINDINGS,
)
from rollout_lws.sandbox.faults import Effect
from rollout_lws.sandbox.store import Event
from tests.cli.conftest import World
from tests.cli.install.test_applying import (
    HOME,
    IMAGE,
    NAME,
    all_names,
    create_namespaces,
    install,
    run,
    there,
    watched,
)
from tests.cli.install.test_manifests import rules

Object = dict[str, Any]
Rights = set[tuple[str, str, str]]
TEAMS = ("team-a", "team-b")
NEEDED = rules(rbac.controller_role())
#: Flags of an installation that is there, and of the one that it becomes.
CHANGES = {
    "narrower": ((), ("--watch-namespace", "team-a")),
    "wider": (("--watch-namespace", "team-a"), ()),
    "elsewhere": (("--watch-namespace", "team-a"), ("--watch-namespace", "team-b")),
}


def rights_in(world: World, namespace: str) -> Rights:
    """What the controller may do there, by all of its roles; on the server's own thread."""
    roles = {each["metadata"]["name"]: each for each in world.server.list(CLUSTER_ROLES, "")}
    bindings = [*world.server.list(CLUSTER_ROLE_BINDINGS, ""), *world.server.list(ROLE_BINDINGS, namespace)]
    names = {each["roleRef"]["name"] for each in bindings} & roles.keys()
    return {right for name in names for right in rules(roles[name])}


def watched_by(world: World) -> tuple[str, ...]:
    """Of the two namespaces, those of which the Deployment's controller takes care; on the server's own thread."""
    (container,) = world.server.get(DEPLOYMENTS, HOME, NAME)["spec"]["template"]["spec"]["containers"]
    return tuple(each.partition("=")[2] for each in container["args"] if each.startswith("--namespace=")) or TEAMS


def lacking(world: World, *namespaces: str) -> Rights:
    return {right for namespace in namespaces for right in NEEDED - rights_in(world, namespace)}


def left_over(world: World) -> list[str]:
    """Namespaces in which the controller may read pods although it does not watch them."""

    def look() -> list[str]:
        others = set(TEAMS) - set(watched_by(world))
        return [each for each in others if any(resource == "pods" for _, resource, _ in rights_in(world, each))]

    return world.do(look)


@pytest.fixture(params=CHANGES)
def change(request: pytest.FixtureRequest) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return CHANGES[request.param]


@pytest.fixture
def teams(bare: World) -> World:
    create_namespaces(bare, *TEAMS)
    return bare


def test_no_write_takes_a_right_from_a_controller_that_runs(
    teams: World, change: tuple[tuple[str, ...], tuple[str, ...]]
) -> None:
    """Looked at after each write: the controller before needs its rights until the new one is available."""
    before, after = change
    install(teams, *before)
    run(teams)
    old = teams.do(lambda: watched_by(teams))
    seen: list[Rights] = []
    started: list[bool] = []

    def start(generation: int) -> None:
        counts = dict.fromkeys(("replicas", "updatedReplicas", "availableReplicas"), 2)
        status = {"status": {"observedGeneration": generation, **counts}}
        teams.server.patch(DEPLOYMENTS, HOME, NAME, status, subresource="status")
        started.append(True)

    def look(event: Event) -> None:
        seen.append(lacking(teams, *watched_by(teams), *(() if started else old)))
        metadata = event.object["metadata"]
        if event.resource == DEPLOYMENTS and metadata["generation"] == 2 and not started:
            teams._loop.call_later(0.2, start, metadata["generation"])

    teams.do(lambda: teams.server.store.subscribe(look))
    result = teams.run("install", "--image", IMAGE, *after)
    assert result.exit_code == 0, result.exception
    assert len(seen) > 3 and seen == [set()] * len(seen)
    assert left_over(teams) == []
    assert watched(teams) == set(after[1::2])
    assert (f"{NAME}-namespaced" in all_names(teams, CLUSTER_ROLES)) == bool(after)


@pytest.mark.parametrize("timeout", ["0", "50ms"])
def test_a_version_that_does_not_start_leaves_the_one_before_its_rights(
    teams: World, change: tuple[tuple[str, ...], tuple[str, ...]], timeout: str
) -> None:
    """Whether the command waits for it or not; the same command takes them away when it runs."""
    before, after = change
    install(teams, *before)
    run(teams)
    old = teams.do(lambda: watched_by(teams))
    again = ("install", "--image", f"{IMAGE}-typo", "--timeout", timeout, *after)
    result = teams.run(*again)
    assert result.exit_code == 0 if timeout == "0" else isinstance(result.exception, RolloutLwsError)
    assert "warning: rights that only the controller before this one needs stay until the new" in result.stderr
    assert ": if this command ends earlier, run it again" in result.stderr
    assert teams.do(lambda: lacking(teams, *old, *watched_by(teams))) == set()
    run(teams)
    assert teams.run(*again).exit_code == 0
    assert left_over(teams) == []
    last = teams.run(*again)
    assert (last.exit_code, last.stderr) == (0, "")
    assert {line.rpartition(" ")[2] for line in last.stdout.splitlines()} <= {"unchanged", "available"}


@pytest.mark.long
@pytest.mark.parametrize("verb", ["patch", "delete"])
def test_wherever_a_change_of_scope_ends_controllers_have_their_rights_and_the_next_run_takes_the_others(
    teams: World, change: tuple[tuple[str, ...], tuple[str, ...]], verb: str
) -> None:
    before, after = change
    command = ("install", "--image", IMAGE, "--timeout", "0", *after)
    for nth in range(1, 40):
        install(teams, *before)
        run(teams)
        install(teams, *before)
        old = teams.do(lambda: watched_by(teams))
        result = refusing(teams, verb, nth, *command)
        assert teams.do(partial(lacking, teams, *old)) == set(), nth
        assert teams.do(lambda: lacking(teams, *watched_by(teams))) == set(), nth
        if result.exit_code == 0:
            run(teams)
            result = refusing(teams, verb, nth, *command)
            assert teams.do(lambda: lacking(teams, *watched_by(teams))) == set(), nth
        if result.exit_code == 0:
            break
        assert "run the same command again" in str(result.exception)
    assert result.exit_code == 0
    assert left_over(teams) == []


def refusing(world: World, verb: str, nth: int, *command: str) -> Result:
    """What the command ends with when the ``nth`` such request is refused."""
    refusal = Effect(refusal=ApiError(403, "Forbidden", "no"))
    fault = world.do(lambda: world.http.gate.faults.add(refusal, verb, nth=nth))
    result = world.run(*command)
    world.do(lambda: world.http.gate.faults.rules.remove(fault))
    return result


WATCH = ("--watch-namespace", "team-a")


def interrupt(world: World, *more: str) -> None:
    """An installation that ends before its Deployment is written."""
    refusal = Effect(refusal=ApiError(403, "Forbidden", "no"))
    world.do(lambda: world.http.gate.faults.add(refusal, "patch", "deployments"))
    result = world.run("install", "--image", IMAGE, "--timeout", "0", *more)
    assert isinstance(result.exception, RolloutLwsError)


@pytest.mark.parametrize(
    ("there_before", "interrupted"), [(None, WATCH), ((), WATCH), (WATCH, ())], ids=["first", "narrower", "wider"]
)
def test_what_an_interrupted_installation_has_left_is_taken_away_by_the_next_one(
    teams: World, there_before: tuple[str, ...] | None, interrupted: tuple[str, ...]
) -> None:
    if there_before is not None:
        install(teams, *there_before)
        run(teams)
    interrupt(teams, *interrupted)
    assert watched(teams) == {"team-a"}
    install(teams)
    if there_before is not None:
        run(teams)
        install(teams)
    assert watched(teams) == set()
    assert f"{NAME}-namespaced" not in all_names(teams, CLUSTER_ROLES)
    assert teams.do(lambda: rights_in(teams, "team-a")) >= NEEDED


def test_bindings_that_no_installation_has_made_stay(teams: World) -> None:
    role = {"kind": "ClusterRole", "name": "view"}
    ours = {"app.kubernetes.io/part-of": "rollout-lws"}
    for name, labels in ((NAME, {}), ("rollout-lws-approvers", ours)):
        body = {"metadata": {"name": name, "namespace": "team-a", "labels": labels}, "roleRef": role}
        teams.do(partial(teams.server.create, ROLE_BINDINGS, body))
    install(teams)
    assert {"rollout-lws-approvers", NAME} <= all_names(teams, ROLE_BINDINGS)


def test_what_may_not_be_looked_for_is_told_and_the_installation_goes_on(bare: World) -> None:
    for verb, plural in (("list", "rolebindings"), ("get", "networkpolicies")):
        told = f'{plural} is forbidden: User "ann" cannot {verb} resource "{plural}"'
        refusal = Effect(refusal=ApiError(403, "Forbidden", told))
        bare.do(partial(bare.http.gate.faults.add, refusal, verb, plural))
    result = bare.run("install", "--image", IMAGE, "--timeout", "0")
    assert result.exit_code == 0 and there(bare, DEPLOYMENTS, NAME, HOME)
    lines = [line for line in result.stderr.splitlines() if "could not be looked for, and stays" in line]
    assert len(lines) == 2
    assert 'cannot list resource "rolebindings"' in lines[0] and 'cannot get resource "networkpolicies"' in lines[1]


def test_what_something_else_deletes_first_is_gone(teams: World) -> None:
    install(teams, *WATCH, "--with", "network-policy")
    for resource in (ROLE_BINDINGS, NETWORK_POLICIES):
        gone = Effect(refusal=ApiError(404, "NotFound", f"{resource.plural} not found"))
        teams.do(partial(teams.http.gate.faults.add, gone, "delete", resource.plural))
    run(teams)
    install(teams)
    run(teams)
    install(teams)
