"""Plans of StatefulSets: from files and laid over a cluster; their pods start in parallel or one after the other."""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml

from rollout_lws.api import rollouts
from rollout_lws.cli.plan import immutable
from rollout_lws.cli.plan.merging import merged
from rollout_lws.cli.plan.overlay import overlaid
from rollout_lws.cli.plan.sources import Sources, plans
from rollout_lws.objects.resources import SERVICES, STATEFUL_SETS
from rollout_lws.observe.snapshot import Snapshot
from rollout_lws.sandbox.admission import defaults
from rollout_lws.targets.stateful_set import StatefulSetTarget
from rollout_lws.workload.applied import LAST_APPLIED
from rollout_lws.workload.hold import HOLD
from tests.cli.lint.manifests import LWS, ROUTE, edited, joined
from tests.cli.lint.stateful import (
    DATABASE,
    HEADLESS,
    PLAIN_STS_ROLLOUT,
    STATEFUL_SET,
    STS_PAIR,
    STS_ROLLOUT,
    STS_SERVICE,
    WHOLE_STS,
)
from tests.cli.plan.test_command import run
from tests.scenarios.world import KEYS

Object = dict[str, Any]
SOUND = edited(
    DATABASE, "replicas: many", "replicas: 3", "  template:\n", "  selector: {matchLabels: {app: db}}\n  template:\n"
)
ORDERED = edited(STATEFUL_SET, "  podManagementPolicy: Parallel\n", "")
_STYLE = "    canary:\n      trafficRoutings"


def offline(*texts: str, load: str = "10m") -> Object:
    result = run("-f", "-", "--offline", "-o", "json", "--load-time", load, stdin=joined(*texts))
    told: Object = json.loads(result.stdout)
    return told


def styled(words: str, rollout: str = STS_ROLLOUT) -> str:
    return edited(rollout, _STYLE, words)


def test_a_plan_from_files_names_the_kind() -> None:
    text = run("-f", "-", "--offline", stdin=joined(*WHOLE_STS, SOUND)).stdout
    assert text.startswith("chat  StatefulSet/chat  ns default   4 groups of 1 pod, capacity ExtraWorkload\n")
    assert "  StatefulSet chat-canary " in text
    assert "labels on pods of the new version" in text
    told = offline(*WHOLE_STS)
    assert (told["kind"], told["workload"], told["possible"]) == ("StatefulSet", "chat", True)


@pytest.mark.parametrize(
    ("style", "loads", "in_parallel", "ordered"),
    [
        (_STYLE, 6, 6, 6),
        ("    canary:\n      capacity: InPlace\n      trafficRoutings", 4, 4, 4),
        ("    blueGreen:\n      trafficRoutings", 8, 4, 8),
        ("    blueGreen:\n      promotion: Swap\n      trafficRoutings", 4, 3, 4),
    ],
)
def test_every_capacity_has_a_plan_for_either_order(style: str, loads: int, in_parallel: int, ordered: int) -> None:
    scaled = "promotion: Swap" in style
    rollout = styled(style)
    rollout = edited(rollout, "  workloadRef", "  replicas: 4\n  workloadRef") if scaled else rollout
    for workload, rounds in ((STATEFUL_SET, in_parallel), (ORDERED, ordered)):
        workload = edited(workload, "  replicas: 4\n", "") if scaled else workload
        told = offline(rollout, workload, STS_SERVICE, HEADLESS, ROUTE)
        assert (told["refusals"], told["totals"]["modelLoads"], told["totals"]["loadsInARow"]) == ([], loads, rounds)
        caution = any("is OrderedReady" in each for each in told["cautions"])
        assert caution is (rounds > in_parallel)


def test_loads_one_after_the_other_take_their_time() -> None:
    rollout = edited(
        styled("    blueGreen:\n      trafficRoutings"),
        "        - replicas: 1\n",
        "        - replicas: 100%\n",
        "          traffic: 20%\n",
        "          traffic: 0%\n",
        "        - replicas: 50%\n          traffic: 40%\n",
        "        - replicas: 100%\n          traffic: 40%\n",
    )
    first, other = (offline(rollout, each, *WHOLE_STS[2:])["steps"][0] for each in (STATEFUL_SET, ORDERED))
    assert (first["loadsInARow"], first["seconds"]) == (1, 600)
    assert (other["loadsInARow"], other["seconds"]) == (4, 2400)
    (told,) = [each for each in offline(rollout, ORDERED, *WHOLE_STS[2:])["cautions"] if "OrderedReady" in each]
    assert "8 loads one after the other, with Parallel 2" in told


@pytest.mark.parametrize("unavailable", [None, 3])
def test_a_window_renews_one_at_a_time_unless_max_unavailable_is_stored(unavailable: int | None) -> None:
    strategy = f"  updateStrategy: {{rollingUpdate: {{maxUnavailable: {unavailable}}}}}\n" if unavailable else ""
    workload = edited(STATEFUL_SET, "  template:\n", f"{strategy}  template:\n")
    told = offline(styled("    canary:\n      capacity: InPlace\n      trafficRoutings"), workload, *WHOLE_STS[2:])
    assert told["steps"][-1]["windows"] == (1 if unavailable else 2)


def test_a_surge_is_refused() -> None:
    told = offline(styled("    canary:\n      capacity: Surge\n      trafficRoutings"), *WHOLE_STS[1:])
    assert told["refusals"] == ["a StatefulSet has no surge groups: use capacity InPlace or ExtraWorkload"]


def test_a_pair_that_shifts() -> None:
    labelled = edited(
        STATEFUL_SET, "  replicas: 4\n", "", "        app: chat\n", "        app: chat\n        serves: chat\n"
    )
    green = labelled.replace("chat\n", "chat-green\n").replace("chat-pods", "green-pods")
    told = offline(edited(STS_PAIR, "  workloadRef", "  replicas: 4\n  workloadRef"), labelled, green)
    assert told["refusals"] == []
    assert told["pair"]["active"] == {"name": "chat", "groups": 4}


def test_no_service_tells_two_sides_with_the_same_labels_apart() -> None:
    green = edited(STATEFUL_SET, "  name: chat\n", "  name: chat-green\n")
    told = offline(STS_PAIR, STATEFUL_SET, green)["refusals"]
    assert any("Service chat-api selects leaders of StatefulSet chat-green besides chat" in each for each in told)


def test_databases_beside_it_are_not_asked_for() -> None:
    told = run("-f", "-", "--offline", stdin=joined(SOUND, LWS)).exception
    assert str(told).startswith("no Rollout releases StatefulSet db or LeaderWorkerSet chat: give its manifest")
    elsewhere = edited(SOUND, "  name: db\nspec", "  name: db\n  namespace: data\nspec")
    assert offline(PLAIN_STS_ROLLOUT, STATEFUL_SET, elsewhere)["namespace"] == "default"


def test_one_that_is_missing_is_told() -> None:
    told = run("-f", "-", "--offline", stdin=joined(PLAIN_STS_ROLLOUT, SOUND)).exception
    assert "refers to StatefulSet 'chat', which is not in the files" in str(told)


# Laid over a cluster


def live(**spec: Any) -> Object:
    """As an API server stores the manifest, in care of a Rollout."""
    made = yaml.safe_load(STATEFUL_SET)
    filled = copy.deepcopy(defaults.fill(STATEFUL_SETS, made))
    template = filled["spec"]["template"]
    template["metadata"]["creationTimestamp"] = None
    (container,) = template["spec"]["containers"]
    container["readinessProbe"] |= {
        "failureThreshold": 3,
        "periodSeconds": 10,
        "successThreshold": 1,
        "timeoutSeconds": 1,
    }
    container["readinessProbe"]["httpGet"]["scheme"] = "HTTP"
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": HOLD}}
    return {
        **filled,
        "metadata": {"name": "chat", "uid": "u"},
        "spec": {**filled["spec"], "updateStrategy": strategy, **spec},
    }


def applied(manifest: Object, over: Object) -> StatefulSetTarget:
    found = overlaid(Snapshot(KEYS, {STATEFUL_SETS: [over]}), [manifest], "default").workload(STATEFUL_SETS, "chat")
    assert isinstance(found, StatefulSetTarget)
    return found


def target(over: Object) -> StatefulSetTarget:
    found = Snapshot(KEYS, {STATEFUL_SETS: [over]}).workload(STATEFUL_SETS, "chat")
    assert isinstance(found, StatefulSetTarget)
    return found


def test_what_a_server_has_filled_in_is_no_change() -> None:
    made = applied(yaml.safe_load(STATEFUL_SET), live())
    assert made.version == target(live()).version
    assert made.strategy.partition == HOLD


_CLAIMS = """\
  volumeClaimTemplates:
    - metadata: {name: cache}
      spec:
        accessModes: [ReadWriteOnce]
        resources: {requests: {storage: 1024Gi}}
"""
WITH_CLAIMS = STATEFUL_SET + _CLAIMS
_STORED = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "cache", "creationTimestamp": None},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Ti"}},
        "volumeMode": "Filesystem",
    },
    "status": {"phase": "Pending"},
}


def refused(manifest: str, over: Object) -> list[str]:
    found = Snapshot(KEYS, {STATEFUL_SETS: [over]})
    return [*immutable.refusals(found, [yaml.safe_load(manifest)], "default", ["chat"])]


@pytest.mark.parametrize(
    ("changes", "member"),
    [
        (("serviceName: chat-pods", "serviceName: other"), "serviceName"),
        (("  podManagementPolicy: Parallel\n", "  podManagementPolicy: OrderedReady\n"), "podManagementPolicy"),
        (("    matchLabels:\n      app: chat\n", "    matchLabels:\n      app: talk\n"), "selector"),
        (("storage: 1024Gi", "storage: 2Ti"), "volumeClaimTemplates"),
        ((_CLAIMS, "  volumeClaimTemplates: []\n"), "volumeClaimTemplates"),
        (("serviceName: chat-pods", "serviceName: other", "1024Gi", "2Ti"), "serviceName and volumeClaimTemplates"),
    ],
)
def test_what_cannot_change_is_refused_as_the_server_would(changes: tuple[str, ...], member: str) -> None:
    (told,) = refused(edited(WITH_CLAIMS, *changes), live(volumeClaimTemplates=[_STORED]))
    assert told == (
        f"the API server would refuse the manifest of StatefulSet chat, which changes {member}: of one that exists they"
        " stay as they are; restore them, or give the version a StatefulSet of another name"
    )


@pytest.mark.parametrize(
    "changes",
    [
        (),
        ("server:v1", "server:v2"),
        ("  replicas: 4\n", "  replicas: 6\n  minReadySeconds: 5\n  revisionHistoryLimit: 3\n  ordinals: {start: 2}\n"),
        ("storage: 1024Gi", "storage: 1Ti"),
        ("  podManagementPolicy: Parallel\n", ""),
        (_CLAIMS, ""),
    ],
)
def test_what_can_change_or_does_not_is_not_refused(changes: tuple[str, ...]) -> None:
    manifest = edited(WITH_CLAIMS, *changes) if changes else WITH_CLAIMS
    assert refused(manifest, live(volumeClaimTemplates=[_STORED])) == []


def test_a_line_that_is_removed_from_a_manifest_of_kubectl_changes_it() -> None:
    copied = {"annotations": {LAST_APPLIED: json.dumps(yaml.safe_load(WITH_CLAIMS))}}
    over = live(volumeClaimTemplates=[_STORED])
    over["metadata"] |= copied
    without = edited(WITH_CLAIMS, "  podManagementPolicy: Parallel\n", "", _CLAIMS, "")
    (told,) = refused(without, over)
    assert "which changes podManagementPolicy and volumeClaimTemplates" in told
    assert refused(edited(WITH_CLAIMS, "  replicas: 4\n", ""), over) == []


def test_another_stateful_set_and_one_that_is_not_there_may_have_any() -> None:
    changed = edited(STATEFUL_SET, "serviceName: chat-pods", "serviceName: other")
    assert refused(edited(changed, "  name: chat\n", "  name: talk\n"), live()) == []
    assert refused(edited(changed, "  name: chat\n", "  name: chat\n  namespace: elsewhere\n"), live()) == []
    found = Snapshot(KEYS, {STATEFUL_SETS: []})
    assert [*immutable.refusals(found, [yaml.safe_load(changed)], "default", ["chat"])] == []


def test_the_plan_of_such_a_release_is_a_refusal() -> None:
    objects = [yaml.safe_load(each) for each in (PLAIN_STS_ROLLOUT, STS_SERVICE)]
    rollout, service = ({**each, "metadata": {**each["metadata"], "uid": "r"}} for each in objects)
    found = Snapshot(KEYS, {STATEFUL_SETS: [live()], SERVICES: [service], rollouts(): [rollout]})
    changed = yaml.safe_load(
        edited(STATEFUL_SET, "serviceName: chat-pods", "serviceName: other", "server:v1", "server:v2")
    )
    (plan,) = plans(Sources(found, (changed,), "default", asked=True), "chat", datetime.now(UTC), 60)
    assert plan.refusals[0].startswith("the API server would refuse the manifest of StatefulSet chat, which changes")
    (plan,) = plans(Sources(found, (), "default", asked=True), "chat", datetime.now(UTC), 60)
    assert not any("API server" in each for each in plan.refusals)


def test_the_hold_and_what_is_not_stated_stay() -> None:
    manifest = yaml.safe_load(
        edited(
            STATEFUL_SET,
            "  replicas: 4\n",
            "",
            "  template:",
            "  updateStrategy: {rollingUpdate: {partition: 0}}\n  template:",
        )
    )
    made = applied(manifest, live(replicas=7))
    assert (made.replicas, made.strategy.partition) == (7, HOLD)


@pytest.mark.parametrize(
    ("changes", "changed"),
    [
        (("server:v1", "server:v2"), True),
        (("args: [serve]", "args: [serve, --fast]"), True),
        (("          args: [serve]\n", ""), True),
        (("              port: 8000\n", "              port: 8000\n            periodSeconds: 10\n"), False),
        (("              port: 8000\n", "              port: 8000\n            periodSeconds: 5\n"), True),
        (("      containers:\n", "      nodeSelector: {gpu: h100}\n      containers:\n"), True),
    ],
)
def test_what_a_manifest_changes_is_a_change(changes: tuple[str, str], changed: bool) -> None:
    made = applied(yaml.safe_load(edited(STATEFUL_SET, *changes)), live())
    assert (made.version != target(live()).version) is changed


@pytest.mark.parametrize(
    ("stated", "stored", "seen"),
    [
        ({"limits": {"gpu": 1}}, {"limits": {"gpu": "1"}, "requests": {"gpu": "1"}}, None),
        ({"limits": {"memory": "1024Mi"}}, {"limits": {"memory": "1Gi"}, "requests": {"memory": "1Gi"}}, None),
        ({"limits": {"gpu": 2}}, {"limits": {"gpu": "1"}, "requests": {"gpu": "1"}}, {"limits": {"gpu": "2"}}),
        ({"limits": {"gpu": 1}}, {"limits": {"gpu": "1"}, "requests": {"cpu": "1"}}, {"limits": {"gpu": "1"}}),
        (
            [{"name": "b"}, {"name": "a"}],
            [{"name": "a", "protocol": "TCP"}],
            [{"name": "b"}, {"name": "a", "protocol": "TCP"}],
        ),
        ([1, 2], [1], [1, 2]),
        ({"defaultMode": 256}, {"defaultMode": 420}, {"defaultMode": 256}),
        ({}, {"serviceAccount": "a", "hostNetwork": True}, {"serviceAccount": "a"}),
        ({"a": 1}, None, {"a": 1}),
    ],
)
def test_only_the_servers_own_values_are_filled_in(stated: Any, stored: Any, seen: Any) -> None:
    assert merged(stated, stored) == (stored if seen is None else seen)
