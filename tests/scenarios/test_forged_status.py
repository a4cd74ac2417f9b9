"""Whoever may decide on releases may write their status, all of it: what no controller wrote there holds up nobody, and
leads to no write of an object that the spec does not name.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import HTTP_ROUTES, INFERENCE_POOLS, LEADER_WORKER_SETS, LWS_WORKER_INDEX, SERVICES
from rollout_lws.rollout.reasons import Reason
from tests.definitions import definitions
from tests.scenarios.borders import FOREIGN, marks
from tests.scenarios.invariants import kept_by_lws
from tests.scenarios.routed import (
    BY_POOLS,
    CANARY_POOL,
    POOL,
    PROVIDERS,
    ROUTE,
    SERVICE,
    Provider,
    create_gateway,
    hold_record,
    make,
    routed_at_rest,
    share,
)
from tests.scenarios.scaled import create_autoscaler
from tests.scenarios.stories import CANARY, assert_clean, at_rest, waiting_for_approval
from tests.scenarios.styles import STYLES, Style
from tests.scenarios.test_random_walk import in_virtual_time
from tests.scenarios.walk_plans import PLANS
from tests.scenarios.world import NAME, NAMESPACE, ROLLOUTS, World

_FAR = 2**62
NEVER = "9999-12-31T23:59:59Z"


@pytest.mark.looptime
@pytest.mark.one_in(8)
@pytest.mark.timeout(30)
@pytest.mark.parametrize("member", ["currentStepIndex", "nextStepIndex"])
@pytest.mark.parametrize("number", [-_FAR, 99])
@pytest.mark.parametrize("routed", [False, True], ids=["unrouted", "routed"])
async def test_a_step_that_is_none_is_no_endless_way(world: World, member: str, number: int, routed: bool) -> None:
    if routed:
        await routed_at_rest(world)
    else:
        await at_rest(world)
    await waiting_for_approval(world)
    forged = {"status": {"canaryStatus": {member: number}}}
    world.server.patch(ROLLOUTS, NAMESPACE, NAME, forged, subresource="status")
    await world.sleep(60)
    world.set_image("v3")
    await world.sleep(60)
    assert world.server.get(LEADER_WORKER_SETS, NAMESPACE, NAME)["spec"]["replicas"] > 0


@pytest.mark.looptime
async def test_no_moment_that_is_still_to_come_is_waited_for(world: World) -> None:
    """Each of them says when something happened; a Rollout that leaves would be kept for centuries."""
    before = await routed_at_rest(world, by=BY_POOLS)
    await waiting_for_approval(world)
    world.request("Abort")
    await world.sleep(1)
    ahead = {
        "traffic": dict.fromkeys(("since", "stableDrainedAt", "lastPodGoneAt"), NEVER),
        "finalising": {"since": NEVER},
    }
    world.patch(ROLLOUTS, NAME, {"status": ahead}, "status")
    world.delete(ROLLOUTS, NAME)
    await world.until(lambda: world.get(ROLLOUTS, NAME) is None, "gone")
    assert hold_record(world, BY_POOLS) == before


@pytest.mark.looptime
async def test_a_share_is_given_however_often_it_is_said_to_have_been_lost(world: World) -> None:
    await routed_at_rest(world, {"replicas": 1, "traffic": "20%", "pause": {}}, replicas=2)
    world.patch(ROLLOUTS, NAME, {"status": {"flaps": 2**31 - 1}}, "status")
    await waiting_for_approval(world)
    assert share(world) == 0.2


# Any status at any moment

VICTIM = "victim"
#: What a forger would write for a name, a word, a hash: names of objects that are there, and words of the controller.
WORDS = (
    *(VICTIM, f"{VICTIM}-canary", NAME, CANARY, SERVICE, f"{SERVICE}-canary", ROUTE, POOL, CANARY_POOL),
    *("Promote", "RollBackSteps", "RollBackPromotion", "CleanUp", "Success", "Rollback", "Aborted", "Continuous"),
    *("RolledOutNatively",),
    *("RolloutDeleting", "RolloutDisabled", "StepUpgrade", "StepPaused", "StepReady", "Completed", "True", "False"),
    *("Ready", "Reconciling", "Stalled", "Abort", "", "x", "../../secrets/x"),
    *(each.value for each in Reason),
)
MOMENTS = (
    *("2020-01-01T00:00:00Z", "2026-01-01T00:00:05Z", "2026-01-01T00:01:00.000000Z", "2060-01-01T00:00:00Z"),
    *(NEVER, "9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00+12:00"),
)


class Live(Enum):
    """What stands for a word that shows only in the world: a forger can read all of them."""

    OLD_REVISION = "the stable revision"
    NEW_REVISION = "the revision of the template"
    OLD_HASH = "the hash of the stable template"
    NEW_HASH = "the hash of the template"
    WORKLOAD = "the UID of the LeaderWorkerSet"
    LEADER = "the UID of a leader"
    ROLLOUT = "the UID of the Rollout"


NUMBERS = st.sampled_from((-_FAR, -(2**36), -1, 0, 1, 2, 3, 5, 99, 2**31 - 1, 2**31, 2**36, _FAR))


def any_of(schema: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    """Values that the API server takes for this part of the definition; None takes a member away."""
    kind = schema.get("type")
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if kind == "object" and "properties" in schema:
        parts = {name: any_of(each) for name, each in schema["properties"].items()}
        required = set(schema.get("required") or ())
        return st.fixed_dictionaries(
            {name: part for name, part in parts.items() if name in required},
            optional={name: st.none() | part for name, part in parts.items() if name not in required},
        )
    if kind == "object":
        return st.dictionaries(st.sampled_from(("0", "1", "x")), any_of(schema["additionalProperties"]))
    if kind == "array":
        return st.lists(any_of(schema["items"]), max_size=2)
    if kind == "boolean":
        return st.booleans()
    if kind == "integer":
        low, high = schema.get("minimum", -_FAR), schema.get("maximum", _FAR)
        return NUMBERS.filter(lambda number: low <= number <= high)
    assert kind == "string", f"nobody forges {schema}"
    return st.sampled_from(MOMENTS if schema.get("format") == "date-time" else (*WORDS, *Live))


def _statuses() -> dict[str, st.SearchStrategy[Any]]:
    definition = next(each for each in definitions() if each["spec"]["names"]["kind"] == "Rollout")
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]
    return {name: any_of(each) for name, each in schema["properties"].items()}


#: A few members at a time, so that the rest of what is known goes on to count.
MEMBERS = _statuses()
forgeries = st.lists(st.sampled_from(sorted(MEMBERS)), min_size=1, max_size=4, unique=True).flatmap(
    lambda names: st.fixed_dictionaries({name: st.none() | MEMBERS[name] for name in names})
)
SECONDS = st.sampled_from((0.0, 0.3, 1.0, 2.5, 7.0, 20.0, 60.0))
ACTS = st.lists(st.tuples(forgeries | st.sampled_from(("approve", "wipe", "abort")), SECONDS), min_size=1, max_size=4)
EDITS = st.sampled_from((None, "removed", "renamed"))


def bystanders(world: World) -> None:
    """What others have in the namespace, and would not like to see written."""
    world.gateway = create_gateway(world)
    selector = {"app": "bank", LWS_WORKER_INDEX: "0"}
    for name in (VICTIM, f"{VICTIM}-canary"):
        make(world, SERVICES, name, spec={"selector": selector, "ports": [{"port": 80, "targetPort": 8000}]})
    rules = [{"backendRefs": [{"name": VICTIM, "port": 80}]}]
    make(world, HTTP_ROUTES, VICTIM, spec={"parentRefs": [world.gateway], "rules": rules})
    picker = {"name": VICTIM, "port": {"number": 80}}
    spec = {"selector": {"matchLabels": selector}, "targetPorts": [{"number": 8000}], "endpointPickerRef": picker}
    make(world, INFERENCE_POOLS, VICTIM, spec=spec)
    world.create_workload(replicas=1, size=1, name=VICTIM)
    create_autoscaler(world, name=VICTIM, target=VICTIM)


def known_words(world: World, before: Mapping[str, Any]) -> dict[Live, str]:
    """What a forger reads off the world; ``before`` is the status that the Rollout had at rest."""
    stable, lws = before["stable"], world.view.workload(LEADER_WORKER_SETS, NAME)
    assert lws is not None
    return {
        Live.OLD_REVISION: stable["revision"],
        Live.NEW_REVISION: kept_by_lws(world)[-1],
        Live.OLD_HASH: stable["templateHash"],
        Live.NEW_HASH: lws.version.template_hash,
        Live.WORKLOAD: stable["workloadUID"],
        Live.LEADER: next(iter(world.leader_uids().values()), "none"),
        Live.ROLLOUT: world.rollout["metadata"]["uid"],
    }


def told_live(value: Any, words: Mapping[Live, str]) -> Any:
    if isinstance(value, dict):
        return {name: told_live(each, words) for name, each in value.items()}
    if isinstance(value, list):
        return [told_live(each, words) for each in value]
    return words[value] if isinstance(value, Live) else value


def forge(world: World, act: Any, before: Mapping[str, Any]) -> None:
    if act == "approve":
        world.approve()
        return
    if act == "abort":
        world.request("Abort")
        return
    said = dict.fromkeys(world.status) if act == "wipe" else told_live(act, known_words(world, before))
    try:
        world.patch(ROLLOUTS, NAME, {"status": said}, "status")
    except ApiError as error:
        # The definition does not take everything; what it refuses does no harm.
        assert error.code == 422, error


async def forged(by: Provider, style: Style, acts: list[tuple[Any, float]], edit: str | None) -> None:
    world = World()
    try:
        bystanders(world)
        strangers = {kind: [*world.server.list(kind, NAMESPACE)] for kind in FOREIGN}
        steps = PLANS[style.steps]
        before = await routed_at_rest(world, *steps, replicas=3, by=by, style=style.key, words=style.words)
        at_rest = world.status
        world.checks.clear()
        world.judges_words = False
        world.set_image("v2")
        for act, seconds in acts:
            await world.sleep(seconds)
            forge(world, act, at_rest)
        if edit:
            words = [{"service": "other", "gateway": {"httpRouteName": "other"}}] if edit == "renamed" else None
            plain = [{"replicas": each["replicas"], "pause": {}} for each in steps]
            world.patch_rollout({"strategy": {style.key: {"trafficRoutings": words, "steps": plain}}})
        await world.sleep(30)
        world.delete(ROLLOUTS, NAME)
        await world.until(lambda: world.get(ROLLOUTS, NAME) is None, "gone", 4 * 3600)
        # What was made for it goes with the garbage collector.
        await world.sleep(60)
        standing = [each for kind in FOREIGN for each in world.server.list(kind, NAMESPACE)]
        assert [each["metadata"]["name"] for each in standing if marks(each)] == []
        assert hold_record(world, by) == before
        for kind, known in strangers.items():
            for each in known:
                assert world.get(kind, each["metadata"]["name"])["spec"] == each["spec"]  # type: ignore[index]
        # All that the spec names, and all that is made for a release, is called after the LWS.
        written = {each.name for each in (*world.writes, *world.labels)}
        assert [name for name in written if name != NAME and not name.startswith(f"{NAME}-")] == []
    finally:
        world.close()


def run(by: Provider, style: Style, acts: list[tuple[Any, float]], edit: str | None) -> None:
    in_virtual_time(forged(by, style, acts, edit))


_arguments = given(st.sampled_from(PROVIDERS), st.sampled_from(STYLES), ACTS, EDITS)
_ROUTINE = settings(max_examples=3, derandomize=True, suppress_health_check=[*HealthCheck], phases=[Phase.generate])
_LONG = settings(max_examples=400, suppress_health_check=[*HealthCheck], print_blob=True)


@_arguments
@_ROUTINE
def test_whatever_a_status_says_only_what_the_spec_names_is_written_and_all_of_it_comes_back(
    by: Provider, style: Style, acts: list[tuple[Any, float]], edit: str | None
) -> None:
    run(by, style, acts, edit)


@pytest.mark.long
@pytest.mark.timeout(1800)
@_arguments
@_LONG
def test_hundreds_of_them(by: Provider, style: Style, acts: list[tuple[Any, float]], edit: str | None) -> None:
    run(by, style, acts, edit)


@pytest.mark.looptime
async def test_a_sub_status_wiped_in_mid_release_is_found_again(world: World) -> None:
    await at_rest(world)
    await waiting_for_approval(world)
    world.patch(world.ROLLOUT, NAME, {"status": {"canaryStatus": None}}, "status")
    await world.rest()
    assert world.state == "AwaitingApproval"
    world.approve()
    await world.until_state("Healthy")
    await world.rest()
    assert_clean(world, "v2")
