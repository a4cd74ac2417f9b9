"""Plans of StatefulSets: from files and laid over a cluster; their pods start in parallel or one after the other."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
import yaml

from rollout_lws.cli.plan.merging import merged
from rollout_lws.cli.plan.overlay import overlaid
from rollout_lws.objects.resources import STATEFUL_SETS
from rollout_lws.observe.snapshot import Snapshot
from rollout_lws.sandbox.admission import defaults
from rollout_lws.targets.stateful_set import StatefulSetTarget
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
