"""An uninstallation that cannot begin, or that cannot end: why, what has been changed by then, and what to do."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from rollout_lws.api.resources import batch_releases
from rollout_lws.cli.uninstall.detach_plan import Detachment, detachments
from rollout_lws.cli.uninstall.plan import Controller, Plan, refusal, running
from rollout_lws.errors import ApiError, RolloutLwsError
from rollout_lws.objects.resources import DEPLOYMENTS, LEADER_WORKER_SETS, NAMESPACES, PODS, STATEFUL_SETS, Resource
from rollout_lws.sandbox.faults import Effect
from rollout_lws.sandbox.store import Event
from rollout_lws.workload.hold import HOLD
from tests.cli.conftest import World
from tests.cli.uninstall.commands import printed
from tests.cli.uninstall.held import GROUP, KEYS, NEW, leader_set, leaders, lws, rollout
from tests.cli.uninstall.test_installations import CONTROLLER, HOME, everything, install, refused, uninstall
from tests.terminal import Program

Object = dict[str, Any]


def held(world: World, *, finalizer: bool = True, image: str = NEW, **marks: str) -> None:
    """LWS and Rollout `llama` on a server where no controller runs, with a version that waits."""
    made = rollout(finalizer=finalizer)
    status = {"status": made.pop("status")}
    owner = world.do(partial(world.server.create, world.rollouts, made))
    world.do(partial(world.server.patch, world.rollouts, "default", "llama", status, subresource="status"))
    workload = lws(by=owner["metadata"]["uid"], image=image, **marks)
    world.do(partial(world.server.create, LEADER_WORKER_SETS, created(workload)))
    world.do(partial(world.server.create, STATEFUL_SETS, leader_set("rev-1" if not image else "rev-2")))
    for each in leaders(*["rev-1"] * 4):
        world.do(partial(world.server.create, PODS, each))


def created(workload: Object) -> Object:
    """As a client sends it."""
    metadata = {key: value for key, value in workload["metadata"].items() if key not in ("uid", "resourceVersion")}
    return {**workload, "metadata": metadata}


def partition(world: World) -> int:
    found = world.do(lambda: world.server.get(LEADER_WORKER_SETS, "default", "llama"))
    return int(found["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]["partition"])


def available(world: World, number: int) -> None:
    status = {"status": {"availableReplicas": number}}
    world.do(partial(world.server.patch, DEPLOYMENTS, HOME, CONTROLLER, status, subresource="status"))


def test_a_controller_that_does_not_run_is_told_before_anything_is_changed(world: World) -> None:
    install(world)
    held(world)
    before = everything(world)
    told = refused(world, "--yes")
    assert told == (
        f"nothing was changed: the controller does not run (deployment/{CONTROLLER} in namespace {HOME}), and only a"
        f" controller can restore what Rollouts have changed (1 of them): see kubectl -n {HOME} describe"
        f" deployments,pods. If it can run there no more, kubectl -n {HOME} delete deployment/{CONTROLLER}"
        f" --cascade=foreground, let `rollout-lws controller --leader-elect --leader-elect-resource-namespace {HOME}`"
        " run beside this command"
    )
    assert everything(world) == before


def test_a_controller_that_is_scaled_to_0_is_told_with_what_starts_it(world: World) -> None:
    install(world, "--replicas", "0")
    held(world)
    told = refused(world, "--yes")
    assert f": it is scaled to 0: kubectl -n {HOME} scale deployment/{CONTROLLER} --replicas=1. If it can run" in told


def test_of_two_controllers_the_one_that_is_named_has_to_run(world: World) -> None:
    install(world)
    held(world)
    world.do(lambda: world.server.create(NAMESPACES, {"metadata": {"name": "another"}}))
    found = everything(world)[f"deployments.apps/{HOME}/{CONTROLLER}"]
    meta = {"name": CONTROLLER, "namespace": "another", "labels": found["metadata"]["labels"]}
    world.do(partial(world.server.create, DEPLOYMENTS, {"metadata": meta, "spec": found["spec"]}))
    available(world, 1)
    assert "(deployment/rollout-lws-controller in namespace another)" in refused(world, "--dry-run", "-n", "another")
    assert world.run("uninstall", "--dry-run", "-n", HOME).exit_code == 0


@pytest.mark.parametrize("finalizer", [True, False])
def test_where_no_deployment_is_it_is_told_before_the_question(world: World, finalizer: bool) -> None:
    held(world, finalizer=finalizer)
    told = world.run("uninstall", "--dry-run").stdout.splitlines()
    line = (
        "No Deployment of the controller is on this cluster: nothing lets go of these Rollouts unless one runs"
        " elsewhere: `rollout-lws controller`"
    )
    assert (line in told) == finalizer


def test_the_versions_of_all_workloads_are_read_by_one_list_of_each_kind(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    held(world)
    for name in ("chat", "code"):
        world.do(partial(world.server.create, LEADER_WORKER_SETS, created(lws(name, image=NEW, by="uid-gone"))))
        world.do(partial(world.server.create, STATEFUL_SETS, leader_set("rev-2", name)))
        for each in leaders(*["rev-1"] * 4, name=name):
            world.do(partial(world.server.create, PODS, each))
    read, listed = world.server.get, world.server.list
    reads: list[Resource] = []

    def get(resource: Resource, *arguments: Any) -> Any:
        reads.append(resource)
        return read(resource, *arguments)

    def all_of(resource: Resource, *arguments: Any, **options: Any) -> Any:
        reads.append(resource)
        return listed(resource, *arguments, **options)

    monkeypatch.setattr(world.server, "get", get)
    monkeypatch.setattr(world.server, "list", all_of)
    told = world.run("uninstall", "--dry-run").stdout
    assert told.count("ROLLS in 4 groups") == 3
    # StatefulSets that can be released are listed apart from those that other workloads have made.
    assert (reads.count(STATEFUL_SETS), reads.count(PODS)) == (2, 1)


def test_a_workload_that_is_deleted_or_changed_while_its_hold_is_opened_is_read_again(world: World) -> None:
    for code, reason in ((404, "NotFound"), (409, "Conflict")):
        fault = Effect(refusal=ApiError(code, reason, "leaderworkersets"))
        world.do(partial(world.http.gate.faults.add, fault, "patch", "leaderworkersets"))
    held(world, finalizer=False)
    uninstall(world)
    assert partition(world) == 0


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
def test_a_guard_that_no_controller_answers_is_told_before_anything_is_changed(world: World, policy: str) -> None:
    """With failurePolicy Fail an API server refuses to open what a Rollout of before has left held."""
    install(world, "--with", "guard", "--guard-failure-policy", policy)
    held(world, finalizer=False)
    if policy == "Ignore":
        uninstall(world)
        return
    before = everything(world)
    assert refused(world, "--yes") == (
        "nothing was changed: no controller answers the guard's webhooks, and with failurePolicy Fail every edit is"
        " refused: kubectl delete mutatingwebhookconfigurations,validatingwebhookconfigurations rollout-lws-guard"
        " --ignore-not-found, then run this command again"
    )
    assert everything(world) == before
    available(world, 1)
    uninstall(world)
    assert partition(world) == 0


def test_a_rollout_outside_of_the_watched_namespaces_is_told_before_anything_is_changed(world: World) -> None:
    world.do(lambda: world.server.create(NAMESPACES, {"metadata": {"name": "team-a"}}))
    install(world, "--watch-namespace", "team-a")
    held(world)
    available(world, 1)
    before = everything(world)
    told = refused(world, "--yes")
    assert "rollout/llama in namespace default waits for the controller by its finalizer" in told
    assert "watches namespace team-a only: `rollout-lws install` with --watch-namespace default" in told
    assert everything(world) == before


def test_where_no_controller_answers_the_rollout_stays_and_its_hold_too(world: World) -> None:
    held(world)
    told = refused(world, "--yes", "--timeout", "1s", kind=RolloutLwsError)
    assert "rollout/llama in namespace default is marked as deleted, and no controller has let go of it" in told
    assert "`rollout-lws controller` runs one on this machine" in told
    assert partition(world) == HOLD
    assert world.server.get(world.rollouts, "default", "llama")["metadata"]["finalizers"] == [KEYS.rollout_finalizer]
    definitions = [place for place in everything(world) if place.endswith(f"rollouts.{GROUP}")]
    assert len(definitions) == 1


def test_a_rollout_that_no_controller_has_to_let_go_needs_no_wait(world: World) -> None:
    held(world, finalizer=False)
    assert "rollout/llama in namespace default deleted" in uninstall(world, "--timeout", "0")
    assert partition(world) == 0


def test_a_rollout_that_leaves_too_slowly_goes_on_by_itself(world: World) -> None:
    held(world)
    status = {"status": {"observedGeneration": 9, "message": "leaving the LeaderWorkerSet: draining"}}
    world.do(partial(world.server.patch, world.rollouts, "default", "llama", status, subresource="status"))
    told = refused(world, "--yes", "--timeout", "1s", kind=RolloutLwsError)
    assert "is not gone after 1.0s: leaving the LeaderWorkerSet: draining. It goes on by itself" in told
    assert partition(world) == HOLD


def test_a_rollout_that_somebody_makes_anew_keeps_its_controller_and_its_definitions(world: World) -> None:
    install(world)
    held(world, finalizer=False)

    def again(event: Event) -> None:
        gone = event.type == "DELETED" and event.object["kind"] == "Rollout"
        if gone and event.object["metadata"]["name"] == "llama":
            world._loop.call_soon(partial(world.server.create, world.rollouts, rollout("chat", finalizer=False)))

    world.do(lambda: world.server.store.subscribe(again))
    told = refused(world, "--yes", kind=RolloutLwsError)
    assert (
        "rollout.rollouts.kruise.io/chat in namespace default is there, so the controller and the definitions have"
        in told
    )
    assert f"deployments.apps/{HOME}/{CONTROLLER}" in everything(world)
    assert printed(uninstall(world)) != []


def test_a_record_that_is_left_keeps_the_definitions(world: World) -> None:
    records = batch_releases()
    body = {"metadata": {"name": "llama", "namespace": "default", "finalizers": [KEYS.batch_release_finalizer]}}
    body |= {"spec": {"workloadRef": rollout()["spec"]["workloadRef"], "releasePlan": {}}}
    world.do(partial(world.server.create, records, body))
    told = refused(world, "--yes", kind=RolloutLwsError)
    assert "batchrelease.rollouts.kruise.io/llama in namespace default is there" in told


def test_what_a_rollout_has_left_held_is_opened_and_told(world: World) -> None:
    held(world, finalizer=False, held="a version waits")
    world.do(partial(world.server.delete, world.rollouts, "default", "llama"))
    told = uninstall(world)
    opened = "leaderworkerset/llama in namespace default has its own strategy back: the version that waits"
    assert any(line.startswith(opened) for line in told)
    assert partition(world) == 0


def at_a_terminal(world: World, *flags: str) -> Program:
    main = [sys.executable, "-c", "from rollout_lws.cli.main import main; main()"]
    return Program([*main, "--kubeconfig", str(world.kubeconfig), "uninstall", *flags], os.environ, columns=250)


def test_whoever_says_no_to_all_of_it_has_changed_nothing(world: World) -> None:
    held(world, finalizer=False)
    before = everything(world)
    with at_a_terminal(world) as program:
        where = world.http.url.partition("/token")[0]
        program.shows(
            lambda text: re.search(rf"Take these Rollouts off \S+ \({re.escape(where)}\)\? \[y/N\]", text) is not None
        )
        program.type("n\n")
        program.shows(lambda text: "rollout-lws: nothing was changed" in text)
        assert program.process.wait(30) == 1
    assert everything(world) == before


def test_a_version_that_shall_not_roll_keeps_its_rollout_and_the_controller(world: World) -> None:
    install(world)
    held(world, finalizer=False)
    before = everything(world)
    with at_a_terminal(world) as program:
        program.shows(lambda text: "Take these Rollouts off" in text)
        program.type("y\n")
        program.shows(lambda text: "ROLLS in 4 groups, 1 at a time. Open the hold? [y/N]" in text)
        program.type("n\n")
        program.shows(lambda text: "to keep what runs: rollout-lws undo llama -n default" in text)
        assert program.process.wait(30) == 1
    assert everything(world) == before


def test_another_version_than_the_one_that_was_agreed_to_is_asked_for_again(world: World) -> None:
    held(world, finalizer=False)
    with at_a_terminal(world) as program:
        program.shows(lambda text: "Take these Rollouts off" in text)
        program.type("y\n")
        program.shows(lambda text: f"{NEW}) ROLLS" in text and "Open the hold? [y/N]" in text)
        spec = lws(image="third")["spec"]["leaderWorkerTemplate"]
        body = {"spec": {"leaderWorkerTemplate": spec}}
        world.do(partial(world.server.patch, LEADER_WORKER_SETS, "default", "llama", body))
        program.type("y\n")
        program.shows(lambda text: "(third) ROLLS in 4 groups, 1 at a time. Open the hold? [y/N]" in text)
        assert partition(world) == HOLD
        program.type("n\n")
        assert program.process.wait(30) == 1
    assert partition(world) == HOLD


def test_a_version_that_comes_when_the_rollout_is_gone_is_told_of_the_workload(world: World) -> None:
    held(world, finalizer=False, image="")
    body = {"spec": {"leaderWorkerTemplate": lws(image=NEW)["spec"]["leaderWorkerTemplate"]}}
    leader_version = {"metadata": {"labels": leader_set("rev-2")["metadata"]["labels"]}}

    def comes() -> None:
        world.server.patch(LEADER_WORKER_SETS, "default", "llama", body)
        world.server.patch(STATEFUL_SETS, "default", "llama", leader_version)

    def comes_then(event: Event) -> None:
        if event.type == "DELETED" and event.object["kind"] == "Rollout":
            world._loop.call_soon(comes)

    world.do(lambda: world.server.store.subscribe(comes_then))
    with at_a_terminal(world) as program:
        program.shows(lambda text: "Take these Rollouts off" in text)
        program.type("y\n")
        program.shows(lambda text: "leaderworkerset/llama in namespace default: the version that waits" in text)
        program.type("n\n")
        program.shows(lambda text: "left: leaderworkerset/llama in namespace default (held)" in text)
        program.shows(lambda text: "to keep what runs: put the template of what runs back; then run" in text)
        assert program.process.wait(30) == 1
    assert partition(world) == HOLD


def plan(*, finalizer: bool = True, group: str = GROUP, **controller: Any) -> Plan:
    found: tuple[Detachment, ...] = detachments(group, [rollout(finalizer=finalizer)], {}, lambda _: ("", ()))
    return Plan(found, Controller(HOME, CONTROLLER, **controller) if controller else Controller())


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (plan(available=1), ""),
        (plan(available=0, finalizer=False), ""),
        (plan(), ""),
        (plan(available=0), "describe deployments,pods"),
        (plan(available=0, wanted=0), "scale deployment/rollout-lws-controller --replicas=1"),
        (plan(available=1, watched=("default",)), ""),
        (plan(available=1, watched=("team-a", "team-b")), "watches namespace team-a and team-b only"),
    ],
)
def test_only_a_controller_that_lets_go_makes_an_uninstallation(seen: Plan, why: str) -> None:
    told = refusal(seen)
    assert bool(told) == bool(why) and why in told


def test_a_controller_elsewhere_waits_for_the_one_on_the_cluster() -> None:
    waits = f"--leader-elect --leader-elect-resource-namespace {HOME}"
    assert running(plan(available=0)) == f"rollout-lws controller {waits}"
    assert running(plan(available=0, group="a.org")) == f"rollout-lws controller {waits} --api-group a.org"
    assert running(replace(plan(), controller=Controller(HOME))) == f"rollout-lws controller {waits}"
    assert running(plan()) == "rollout-lws controller"
