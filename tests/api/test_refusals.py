"""What an API server refuses of a Rollout when it is applied, and the words that a person then reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rollout_lws.api import batch_releases, crd, rollouts
from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import CUSTOM_RESOURCE_DEFINITIONS
from rollout_lws.sandbox.apiserver import ApiServer

REF = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "name": "llama"}
STEPS = [{"replicas": 1}]


@pytest.fixture(scope="module")
def installed() -> ApiServer:
    server = ApiServer(lambda: 1_767_225_600.0, seed=7)
    for manifest in crd.render():
        server.create(CUSTOM_RESOURCE_DEFINITIONS, manifest)
    return server


@pytest.fixture
def server(installed: ApiServer) -> Iterator[ApiServer]:
    yield installed
    for resource in (rollouts(), batch_releases()):
        for each in installed.list(resource):
            installed.delete(resource, "default", each["metadata"]["name"])


OTHER = {**REF, "name": "llama-green"}


def rollout(strategy: Any = None, *, name: str = "llama", ref: Any = None, **members: Any) -> dict[str, Any]:
    spec = {
        "workloadRef": {**REF, **(ref or {})},
        "strategy": {"canary": {"steps": STEPS}} if strategy is None else strategy,
        **members,
    }
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


def canary(**members: Any) -> dict[str, Any]:
    return {"canary": {"steps": STEPS, **members}}


def step(**members: Any) -> dict[str, Any]:
    return {"canary": {"steps": [{"replicas": 1, **members}]}}


_GOOD: dict[str, Any] = {
    "the smallest": canary(),
    "a count": step(replicas=1_000_000),
    "one per cent": step(replicas="1%"),
    "all": step(replicas="100%"),
    "no traffic at first": step(traffic="0%"),
    "traffic in proportion": step(traffic="auto"),
    "an approval": step(pause={}),
    "an approval in time": step(pause={"approvalTimeoutSeconds": 60}),
    "no pause": step(pause={"duration": 0}),
    "an extra workload, said twice": canary(capacity="ExtraWorkload", enableExtraWorkloadForCanary=True),
    "in place, said twice": canary(capacity="InPlace", enableExtraWorkloadForCanary=False),
    "surge, said twice": canary(capacity="Surge", enableExtraWorkloadForCanary=False),
    "only Kruise's word": canary(enableExtraWorkloadForCanary=False),
    "only our word": canary(capacity="InPlace"),
    "blue-green": {"blueGreen": {"steps": [{"replicas": "100%"}]}},
    "fifty steps": {"canary": {"steps": [{"replicas": number} for number in range(1, 51)]}},
    "a threshold": canary(failureThreshold="0%"),
    "deadlines": {
        **canary(),
        "progressDeadlineSeconds": 1,
        "capacityDeadlineSeconds": 600,
        "minReadySeconds": 0,
        "onFailure": "Abort",
    },
}


@pytest.mark.parametrize("strategy", _GOOD.values(), ids=_GOOD)
def test_what_makes_sense_is_accepted_and_comes_back_as_written(server: ApiServer, strategy: Any) -> None:
    made = server.create(rollouts(), rollout(strategy))
    assert made["spec"] == rollout(strategy)["spec"]


STRATEGY, CANARY = "spec.strategy", "spec.strategy.canary"
ONE = f'{STRATEGY}: Invalid value: "object": exactly one of canary and blueGreen must be set'
MORE = f'{CANARY}.steps[0]: Invalid value: "object": replicas must be more than 0'
REPLICAS = f"{CANARY}.steps[0].replicas in body should"
TWICE = f'{CANARY}: Invalid value: "object": capacity contradicts enableExtraWorkloadForCanary: remove the latter'
PERCENT = "match '^(100|[1-9]?[0-9])%$'"

_BAD: dict[str, tuple[Any, str]] = {
    "no style": ({}, ONE),
    "two styles": ({"canary": {"steps": STEPS}, "blueGreen": {"steps": STEPS}}, ONE),
    "no steps": (canary(steps=[]), f"{CANARY}.steps in body should have at least 1 items"),
    "steps forgotten": ({"canary": {}}, f"{CANARY}.steps: Required value"),
    "fifty-one steps": (canary(steps=STEPS * 51), f"{CANARY}.steps: Too many: 51: must have at most 50 items"),
    "a step of nothing": (step(replicas=0), MORE),
    "a step of no per cent": (step(replicas="0%"), MORE),
    "a blue-green step of nothing": (
        {"blueGreen": {"steps": [{"replicas": 0}]}},
        f'{STRATEGY}.blueGreen.steps[0]: Invalid value: "object": replicas must be more than 0',
    ),
    "a negative step": (step(replicas=-1), f"{REPLICAS} be greater than or equal to 0"),
    "more than any LWS has": (step(replicas=1_000_001), f"{REPLICAS} be less than or equal to 1000000"),
    "more than all": (step(replicas="101%"), f"{REPLICAS} {PERCENT}"),
    "a count in quotes": (step(replicas="2"), f"{REPLICAS} {PERCENT}"),
    "a share with a leading zero": (step(replicas="020%"), f"{REPLICAS} {PERCENT}"),
    "a step without replicas": (canary(steps=[{"pause": {}}]), f"{CANARY}.steps[0].replicas: Required value"),
    "half a group": (step(replicas=0.5), "must be of type integer,string"),
    "traffic without a sign": (step(traffic="20"), "steps[0].traffic in body should match"),
    "traffic as a number": (step(traffic=20), "steps[0].traffic in body must be of type string"),
    "a pause both ways": (
        step(pause={"duration": 60, "approvalTimeoutSeconds": 60}),
        f'{CANARY}.steps[0].pause: Invalid value: "object": approvalTimeoutSeconds needs a pause without duration',
    ),
    "a pause in words": (step(pause={"duration": "60s"}), "pause.duration in body must be of type integer"),
    "a pause before now": (step(pause={"duration": -1}), "pause.duration in body should be greater than or equal to 0"),
    "in place and yet extra": (canary(capacity="InPlace", enableExtraWorkloadForCanary=True), TWICE),
    "surge and yet extra": (canary(capacity="Surge", enableExtraWorkloadForCanary=True), TWICE),
    "shift and yet in place": (canary(capacity="Shift", enableExtraWorkloadForCanary=False), TWICE),
    "extra and yet in place": (canary(capacity="ExtraWorkload", enableExtraWorkloadForCanary=False), TWICE),
    "an unknown capacity": (
        canary(capacity="Sideways"),
        f'{CANARY}.capacity: Unsupported value: "Sideways": supported values: "ExtraWorkload", "InPlace", "Surge",'
        ' "Shift", "Pair"',
    ),
    "an unknown way to fail": (
        {**canary(), "onFailure": "Panic"},
        f'{STRATEGY}.onFailure: Unsupported value: "Panic": supported values: "Pause", "Abort"',
    ),
    "two routings": (
        canary(trafficRoutings=[{"service": "a"}, {"service": "b"}]),
        f"{CANARY}.trafficRoutings: Too many: 2: must have at most 1 items",
    ),
    "a routing of no Service": (canary(trafficRoutings=[{}]), f"{CANARY}.trafficRoutings[0].service: Required value"),
    "a drain of days": (
        canary(trafficRoutings=[{"service": "a", "drainSeconds": 7201}]),
        "drainSeconds in body should be less than or equal to 7200",
    ),
    "no time at all": (
        {**canary(), "progressDeadlineSeconds": 0},
        f"{STRATEGY}.progressDeadlineSeconds in body should be greater than or equal to 1",
    ),
}


def refusal(server: ApiServer, body: dict[str, Any]) -> str:
    with pytest.raises(ApiError) as caught:
        server.create(rollouts(), body)
    assert (caught.value.code, caught.value.reason) == (422, "Invalid"), caught.value.message
    return caught.value.message


@pytest.mark.parametrize(("strategy", "message"), _BAD.values(), ids=_BAD)
def test_a_mistake_is_refused_with_its_place_and_the_way_out(server: ApiServer, strategy: Any, message: str) -> None:
    assert message in refusal(server, rollout(strategy))


@pytest.mark.parametrize(
    "ref",
    [
        {"apiVersion": "apps/v1", "kind": "Deployment"},
        {"apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet"},
        {"apiVersion": "apps/v1"},
        {"kind": "Deployment"},
        {"apiVersion": "leaderworkerset.x-k8s.io/v1alpha1"},
        {"apiVersion": "workload.kubernetes.io/v1alpha1"},
    ],
)
def test_another_kind_of_workload_is_refused_with_the_right_ones_name(server: ApiServer, ref: dict[str, str]) -> None:
    told = refusal(server, rollout(ref=ref))
    both = "leaderworkerset.x-k8s.io/v1 LeaderWorkerSet and apps/v1 StatefulSet can be released"
    assert f'spec.workloadRef: Invalid value: "object": only {both}' in told


PAIRED = canary(capacity="Pair")
TOGETHER = 'spec: Invalid value: "object": capacity Pair and counterpartRef go together: set both or neither'
ANOTHER = 'spec: Invalid value: "object": counterpartRef must name another workload of the kind of workloadRef'


@pytest.mark.parametrize(
    "members", [{"touch": "RouteOnly"}, {"touch": "RouteOnly", "activeSide": "llama-green"}, {}, {"replicas": 4}]
)
def test_a_pair_is_accepted(server: ApiServer, members: dict[str, Any]) -> None:
    made = server.create(rollouts(), rollout(PAIRED, counterpartRef=OTHER, **members))
    assert made["spec"]["counterpartRef"] == OTHER


def test_a_number_of_groups_is_refused_where_no_workload_is_scaled(server: ApiServer) -> None:
    told = refusal(server, rollout(PAIRED, counterpartRef=OTHER, touch="RouteOnly", replicas=4))
    assert "with touch RouteOnly no workload is scaled: scale the workload itself" in told


SHIFTS = (
    'spec: Invalid value: "object": shift is for capacity Shift, and for a pair whose workloads the release scales (no'
    " touch)"
)
NO_MARGIN = (
    f'{CANARY}.shift: Invalid value: "object": with maxExtraGroups 0 a group has to be allowed to lack: set'
    " maxUnavailableGroups 1, or remove maxExtraGroups"
)


@pytest.mark.parametrize(
    "shift",
    [
        {},
        {"maxExtraGroups": 2},
        {"maxExtraGroups": "1%"},
        {"maxUnavailableGroups": 0},
        {"maxUnavailableGroups": "0%"},
        {"maxExtraGroups": 0, "maxUnavailableGroups": 1},
        {"maxExtraGroups": "0%", "maxUnavailableGroups": "25%"},
        {"maxExtraGroups": "100%", "maxUnavailableGroups": 1_000_000},
    ],
    ids=str,
)
@pytest.mark.parametrize("capacity", ["Pair", "Shift"])
def test_a_shift_is_accepted(server: ApiServer, capacity: str, shift: dict[str, Any]) -> None:
    members = {"counterpartRef": OTHER} if capacity == "Pair" else {}
    plan = canary(capacity=capacity, shift=shift, trafficRoutings=[{"service": "llama-api"}])
    made = server.create(rollouts(), rollout(plan, **members))
    assert made["spec"]["strategy"]["canary"]["shift"] == shift


@pytest.mark.parametrize(
    ("shift", "told"),
    [
        ({"maxExtraGroups": 0}, NO_MARGIN),
        ({"maxExtraGroups": "0%"}, NO_MARGIN),
        ({"maxExtraGroups": 0, "maxUnavailableGroups": 0}, NO_MARGIN),
        ({"maxExtraGroups": 0, "maxUnavailableGroups": "0%"}, NO_MARGIN),
        ({"maxExtraGroups": "0%", "maxUnavailableGroups": 0}, NO_MARGIN),
        ({"maxExtraGroups": -1}, "shift.maxExtraGroups in body should be greater than or equal to 0"),
        ({"maxExtraGroups": "101%"}, f"shift.maxExtraGroups in body should {PERCENT}"),
        ({"maxUnavailableGroups": "1"}, f"shift.maxUnavailableGroups in body should {PERCENT}"),
        ({"maxUnavailableGroups": True}, "shift.maxUnavailableGroups in body must be of type integer,string"),
    ],
    ids=str,
)
def test_a_shift_in_which_no_group_can_go_is_refused(server: ApiServer, shift: dict[str, Any], told: str) -> None:
    assert told in refusal(server, rollout(canary(capacity="Pair", shift=shift), counterpartRef=OTHER))


@pytest.mark.parametrize("routings", [{}, {"trafficRoutings": []}], ids=str)
def test_a_shift_of_one_workload_without_routings_is_refused(server: ApiServer, routings: dict[str, Any]) -> None:
    told = refusal(server, rollout(canary(capacity="Shift", **routings)))
    assert "capacity Shift takes requests off groups before they go: it needs trafficRoutings" in told


def blue_green(**members: Any) -> dict[str, Any]:
    return {"blueGreen": {"steps": [{"replicas": "100%"}], **members}}


@pytest.mark.parametrize(
    "members",
    [
        {"scaleDownDelaySeconds": 0},
        {"promotion": "Swap", "scaleDownDelaySeconds": 0},
        {"promotion": "Swap", "scaleDownDelaySeconds": 86_400, "trafficRoutings": [{"service": "llama-api"}]},
    ],
    ids=str,
)
def test_groups_that_stay_are_accepted(server: ApiServer, members: dict[str, Any]) -> None:
    made = server.create(rollouts(), rollout(blue_green(**members)))
    delay = members["scaleDownDelaySeconds"]
    assert made["spec"]["strategy"]["blueGreen"]["scaleDownDelaySeconds"] == delay


KEEPS = "scaleDownDelaySeconds keeps the groups that promotion Swap has taken the requests off by trafficRoutings"


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ({"scaleDownDelaySeconds": 60}, KEEPS),
        ({"promotion": "InPlace", "scaleDownDelaySeconds": 60, "trafficRoutings": [{"service": "llama-api"}]}, KEEPS),
        ({"promotion": "Swap", "scaleDownDelaySeconds": 60}, KEEPS),
        ({"promotion": "Swap", "scaleDownDelaySeconds": 60, "trafficRoutings": []}, KEEPS),
        ({"scaleDownDelaySeconds": -1}, "scaleDownDelaySeconds in body should be greater than or equal to 0"),
        ({"scaleDownDelaySeconds": 86_401}, "scaleDownDelaySeconds in body should be less than or equal to 86400"),
        ({"scaleDownDelaySeconds": "1h"}, "scaleDownDelaySeconds in body must be of type integer"),
    ],
    ids=str,
)
def test_groups_that_cannot_stay_are_refused(server: ApiServer, members: dict[str, Any], told: str) -> None:
    assert told in refusal(server, rollout(blue_green(**members)))


@pytest.mark.parametrize(
    ("strategy", "members"),
    [
        (canary(shift={}), {}),
        (canary(capacity="InPlace", shift={}), {}),
        (canary(capacity="Shift", shift={}), {"touch": "RouteOnly"}),
        (canary(capacity="Pair", shift={}), {"counterpartRef": OTHER, "touch": "RouteOnly"}),
    ],
    ids=["no capacity", "another capacity", "one workload that its owner scales", "a pair that its owner scales"],
)
def test_a_shift_of_what_no_release_scales_is_refused(server: ApiServer, strategy: Any, members: Any) -> None:
    assert SHIFTS in refusal(server, rollout(strategy, **members))


@pytest.mark.parametrize(
    ("strategy", "counterpart", "told"),
    [
        (PAIRED, None, TOGETHER),
        (canary(), OTHER, TOGETHER),
        (canary(capacity="InPlace"), OTHER, TOGETHER),
        ({"blueGreen": {"steps": STEPS}}, OTHER, TOGETHER),
        (PAIRED, REF, ANOTHER),
        (PAIRED, {**OTHER, "kind": "Deployment"}, ANOTHER),
        (PAIRED, {**OTHER, "apiVersion": "leaderworkerset.x-k8s.io/v1alpha1"}, ANOTHER),
        (PAIRED, {**OTHER, "name": ""}, "spec.counterpartRef.name in body should be at least 1 chars long"),
        (PAIRED, {"name": "llama-green"}, "spec.counterpartRef.apiVersion: Required value"),
        (canary(capacity="Pair", enableExtraWorkloadForCanary=True), OTHER, TWICE),
    ],
)
def test_half_a_pair_is_refused(server: ApiServer, strategy: Any, counterpart: Any, told: str) -> None:
    members = {} if counterpart is None else {"counterpartRef": counterpart}
    assert told in refusal(server, rollout(strategy, **members))


def test_another_way_to_treat_a_pair_is_refused(server: ApiServer) -> None:
    told = refusal(server, rollout(PAIRED, counterpartRef=OTHER, touch="Everything"))
    assert 'spec.touch: Unsupported value: "Everything": supported values: "RouteOnly"' in told


PREFILL = {"name": "prefill", "counterpart": "prefill-green", "replicas": "200%"}
OF_OWNER = {"name": "prefill", "counterpart": "prefill-green"}


@pytest.mark.parametrize(
    ("companion", "members"),
    [(PREFILL, {}), ({**PREFILL, "replicas": 3}, {}), (OF_OWNER, {"touch": "RouteOnly"})],
    ids=str,
)
def test_companions_are_accepted(server: ApiServer, companion: dict[str, Any], members: dict[str, Any]) -> None:
    made = server.create(rollouts(), rollout(PAIRED, counterpartRef=OTHER, companions=[companion], **members))
    assert made["spec"]["companions"] == [companion]


@pytest.mark.parametrize(
    ("companions", "strategy", "members", "told"),
    [
        ([PREFILL], canary(), {}, "companions are of a pair: name its second workload in counterpartRef"),
        ([OF_OWNER], PAIRED, {"counterpartRef": OTHER}, "each companion needs replicas, unless touch is RouteOnly"),
        (
            [PREFILL],
            PAIRED,
            {"counterpartRef": OTHER, "touch": "RouteOnly"},
            "each companion needs replicas, unless touch is RouteOnly: then its owner scales it",
        ),
        (
            [PREFILL],
            canary(capacity="Pair", shift={}),
            {"counterpartRef": OTHER},
            "groups of companions cannot be exchanged one by one: remove shift, or companions",
        ),
        ([PREFILL] * 5, PAIRED, {"counterpartRef": OTHER}, "spec.companions: Too many: 5: must have at most 4 items"),
        ([{**PREFILL, "replicas": 0}], PAIRED, {"counterpartRef": OTHER}, "should be greater than or equal to 1"),
        ([{**PREFILL, "replicas": "0%"}], PAIRED, {"counterpartRef": OTHER}, "spec.companions[0].replicas"),
    ],
    ids=str,
)
def test_companions_that_cannot_be_released_are_refused(
    server: ApiServer, companions: Any, strategy: Any, members: Any, told: str
) -> None:
    assert told in refusal(server, rollout(strategy, companions=companions, **members))


def test_the_sides_change_only_when_none_is_in_care(server: ApiServer) -> None:
    def edit(**members: Any) -> None:
        server.patch(rollouts(), "default", "llama", {"spec": members})

    def single() -> None:
        edit(counterpartRef=None, strategy={"canary": {"capacity": None}})

    def paired(name: str) -> None:
        edit(counterpartRef={**REF, "name": name}, strategy={"canary": {"capacity": "Pair"}})

    def status(stable: dict[str, str] | None) -> None:
        body = {"status": {"phase": "Healthy", "stable": stable}}
        server.patch(rollouts(), "default", "llama", body, subresource="status")

    server.create(rollouts(), rollout(PAIRED, counterpartRef=OTHER))
    paired("llama-red")
    single()
    paired("llama-green")
    status({"templateHash": "0123456789"})
    in_care = (
        'Invalid value: "object": spec.counterpartRef, spec.touch and the names of spec.companions cannot change while'
        " the workloads are in care: set spec.disabled to true first"
    )
    with pytest.raises(ApiError) as caught:
        paired("llama-red")
    assert in_care in caught.value.message
    with pytest.raises(ApiError) as caught:
        single()
    assert in_care in caught.value.message
    with pytest.raises(ApiError) as caught:
        edit(touch="RouteOnly")
    assert in_care in caught.value.message
    with pytest.raises(ApiError) as caught:
        edit(companions=[PREFILL])
    assert in_care in caught.value.message
    edit(strategy={"paused": True}, activeSide="llama-green")
    status(None)
    edit(companions=[PREFILL])
    status({"templateHash": "0123456789-0123456789"})
    edit(companions=[{**PREFILL, "replicas": 3}])
    for other in ([{**PREFILL, "counterpart": "prefill-red"}], None):
        with pytest.raises(ApiError) as caught:
            edit(companions=other)
        assert in_care in caught.value.message
    status(None)
    edit(companions=None)
    single()
    status({"templateHash": "0123456789"})
    with pytest.raises(ApiError) as caught:
        paired("llama-green")
    assert in_care in caught.value.message


def test_a_name_that_no_label_can_carry_is_refused(server: ApiServer) -> None:
    server.create(rollouts(), rollout(name="a" * 63))
    assert "the name may have at most 63 characters" in refusal(server, rollout(name="a" * 64))


def test_the_workload_changes_only_when_none_is_in_care(server: ApiServer) -> None:
    def point_at(name: str) -> None:
        server.patch(rollouts(), "default", "llama", {"spec": {"workloadRef": {"name": name}}})

    def status(stable: dict[str, str] | None) -> None:
        body = {"status": {"phase": "Healthy", "stable": stable}}
        server.patch(rollouts(), "default", "llama", body, subresource="status")

    server.create(rollouts(), rollout())
    point_at("mistral")
    status({"templateHash": "0123456789"})
    with pytest.raises(ApiError) as caught:
        point_at("llama")
    assert (
        'Invalid value: "object": spec.workloadRef cannot change while that workload is in care, it would stay held:'
        " set spec.disabled to true first"
    ) in caught.value.message
    with pytest.raises(ApiError, match="in care"):
        ref = {"apiVersion": "apps/v1", "kind": "StatefulSet"}
        server.patch(rollouts(), "default", "llama", {"spec": {"workloadRef": ref}})
    server.patch(rollouts(), "default", "llama", {"spec": {"strategy": {"paused": True}}})
    status(None)
    point_at("llama")


def test_a_name_of_a_workload_may_not_be_empty(server: ApiServer) -> None:
    assert "spec.workloadRef.name in body should be at least 1 chars long" in refusal(server, rollout(ref={"name": ""}))


def test_absent_members_of_a_routing_get_their_defaults_and_nothing_else_is_filled_in(server: ApiServer) -> None:
    matches = [{"headers": [{"name": "user", "value": "beta"}], "path": {}}]
    written = step(matches=matches)
    written["canary"]["trafficRoutings"] = [{"service": "llama", "gateway": {"httpRouteName": "llama"}}]
    made = server.create(rollouts(), rollout(written))["spec"]["strategy"]["canary"]
    assert made["trafficRoutings"] == [
        {
            "service": "llama",
            "gateway": {"httpRouteName": "llama"},
            "gracePeriodSeconds": 3,
            "drainSeconds": 30,
            "target": "AsSelected",
        }
    ]
    assert made["steps"][0]["matches"] == [
        {
            "headers": [{"name": "user", "value": "beta", "type": "Exact"}],
            "path": {"type": "PathPrefix", "value": "/"},
        }
    ]


def test_fields_nobody_knows_are_pruned(server: ApiServer) -> None:
    made = server.create(rollouts(), rollout({**canary(), "stratgey": 1}))
    assert "stratgey" not in made["spec"]["strategy"]


def test_a_status_is_written_through_its_own_door_alone(server: ApiServer) -> None:
    server.create(rollouts(), rollout())
    patch = {"status": {"phase": "Healthy"}}
    assert "status" not in server.patch(rollouts(), "default", "llama", patch)
    made = server.patch(rollouts(), "default", "llama", patch, subresource="status")
    assert (made["status"]["phase"], made["metadata"]["generation"]) == ("Healthy", 1)


def test_conditions_are_told_apart_by_their_type(server: ApiServer) -> None:
    server.create(rollouts(), rollout())
    ready = {"type": "Ready", "status": "True", "reason": "Healthy", "message": ""}
    with pytest.raises(ApiError, match=r'conditions\[1\]: Duplicate value: \{"type":"Ready"\}'):
        server.patch(rollouts(), "default", "llama", {"status": {"conditions": [ready, ready]}}, subresource="status")


def test_sixty_five_renewed_groups_fit_into_a_status(server: ApiServer) -> None:
    server.create(rollouts(), rollout())
    step_record = {"partitionAttempts": {str(ordinal): 1 for ordinal in range(1000)}}
    made = server.patch(rollouts(), "default", "llama", {"status": {"step": step_record}}, subresource="status")
    assert len(made["status"]["step"]["partitionAttempts"]) == 1000
