"""Plans of pairs with companions from files, and over HTTP: what the command prints, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from rollout_lws.errors import UsageError
from tests.cli.conftest import World
from tests.cli.lint.manifests import LWS, PAIR, WHOLE_PAIR, edited, joined
from tests.cli.plan.test_pair_command import SCALED, SIDES, run

COMPANIONS = """\
  companions:
    - name: chat-prefill
      counterpart: green-prefill
      replicas: 50%
"""
ASKED = edited(SCALED, "  replicas: 4\n", f"  replicas: 4\n{COMPANIONS}")
NAMES = ("chat-prefill", "green-prefill")


def of_name(text: str, name: str) -> str:
    """The manifest of a companion, whose pods no Service selects."""
    return edited(text, "  name: chat\n", f"  name: {name}\n", "          app: chat\n", "          app: prefill\n")


PREFILL = tuple(of_name(SIDES[0], name) for name in NAMES)
WHOLE = (ASKED, *SIDES, *PREFILL, *WHOLE_PAIR[3:])
SHOWN = """\
chat  LeaderWorkerSet/chat and chat-green  ns default   4 groups of 2 pods, capacity Pair
Requests      go to chat, 4 groups; a release loads as many of chat-green, which has 1, and moves them there
Companion     + chat-prefill, 2 groups of 2 pods; a release loads 2 of green-prefill, which has 1
Change        none yet: this is how the next version would be released
Begins        when chat-green and green-prefill have the same new rollout-id, or 10 s after each of them has another \
version; or by kubectl rollout-lws start chat
Model loads   6 (4 of chat-green, 2 of green-prefill), 3 one after the other, at most 6 groups more than today
Takes         about 40m36s, and the time until step 1 is approved; a group loads for about 10m, as given
Disrupts      no group that gets requests
Way back      at once until the roles change, by abort; after that by a release of chat (start), which loads 6 groups

STEP        NEW     OLD     LOADS   SHARE   LOAD NEW   LOAD OLD   BUSIEST   TAKES    THEN        WAY BACK
1           1 + 1   4 + 2   2       20%     0.80       0.80       1.00      10m3s    approval    at once
2           2 + 1   4 + 2   1       40%     0.80       0.60       0.80      20m      pause 10m   at once
promotion   4 + 2   0 + 0   3       100%    1.00       0.00       1.00      10m33s               at once
after       4 + 2   0 + 0   0               1.00                  1.00                           6 loads

Will be written
"""


def test_the_plan_is_a_table_of_the_groups_of_all_workloads() -> None:
    result = run("--load-time", "10m", given=joined(*WHOLE))
    assert result.stdout.startswith(SHOWN)
    for name, what in (("chat-prefill", "0 at the end"), ("green-prefill", "up to 2")):
        (line,) = (each for each in result.stdout.splitlines() if each.startswith(f"  LeaderWorkerSet {name} "))
        assert line.endswith(f"changed                  its replicas, {what}; its hold, and the label of its role")
    assert "- LeaderWorkerSet chat-prefill has 1 group, and gets 2 groups before any release, as" in result.stdout
    assert "- LeaderWorkerSet green-prefill has 1 group and no requests: it is scaled to 0 before" in result.stdout
    assert "- the version of LeaderWorkerSet chat-green and green-prefill was there at adoption" in result.stdout
    assert result.exit_code == 0


def test_json_has_the_companions_of_each_step() -> None:
    told = json.loads(run("-o", "json", "--load-time", "10m", given=joined(*WHOLE)).stdout)
    (companion,) = told["pair"]["companions"]
    assert companion == {
        "active": {"name": "chat-prefill", "groups": 2},
        "inactive": {"name": "green-prefill", "groups": 1},
        "replicas": 2,
        "size": 2,
        "change": None,
        "loadSeconds": {"typical": 600, "source": "as given"},
    }
    assert [each["companions"] for each in told["steps"]] == [
        [{"name": "green-prefill", "groups": {"new": 1, "old": 2}, "modelLoads": 1}],
        [{"name": "green-prefill", "groups": {"new": 1, "old": 2}, "modelLoads": 0}],
        [{"name": "green-prefill", "groups": {"new": 2, "old": 0}, "modelLoads": 1}],
    ]
    assert [each["modelLoads"] for each in told["steps"]] == [2, 1, 3]
    assert (told["totals"]["modelLoads"], told["totals"]["extraGroups"]) == (6, 6)
    assert (told["begins"]["seconds"], told["change"]) == (None, None)
    alone = json.loads(run("-o", "json", given=joined(SCALED, *SIDES)).stdout)
    assert (alone["begins"], alone["pair"]["companions"], alone["steps"][0]["companions"]) == (None, [], [])


def test_without_the_time_of_a_load_its_waits_are_told() -> None:
    shown = run(given=joined(*WHOLE)).stdout
    assert "Takes         3 loads one after the other and 10m36s, and the time until step 1 is approved;" in shown


@pytest.mark.parametrize("lacks", [0, 1])
def test_all_workloads_are_needed(lacks: int) -> None:
    result = run(given=joined(ASKED, *SIDES, PREFILL[1 - lacks]))
    assert isinstance(result.exception, UsageError)
    assert f"rollout/chat refers to LeaderWorkerSet '{NAMES[lacks]}', which is not in the files: give" in str(
        result.exception
    )


def test_what_the_controller_would_refuse_of_companions_ends_with_1() -> None:
    stated = edited(PREFILL[0], "spec:\n  leader", "spec:\n  replicas: 2\n  leader")
    result = run(given=joined(ASKED, *SIDES, stated, PREFILL[1]))
    assert "- LeaderWorkerSet chat-prefill gets spec.replicas from a manifest (kubectl apply)" in result.stdout
    assert result.exit_code == 1
    result = run(given=joined(edited(ASKED, "      replicas: 50%\n", ""), *SIDES, *PREFILL))
    assert '- spec.companions[0].replicas: say how many groups chat-prefill has: a count, or "N%"' in result.stdout
    assert result.exit_code == 1


def test_claims_of_companions_that_are_scaled_to_0_are_told() -> None:
    claims = "  leaderWorkerTemplate:\n    volumeClaimTemplates: [{metadata: {name: cache}, spec: {}}]\n"
    prefill = (edited(each, "  leaderWorkerTemplate:\n", claims) for each in PREFILL)
    shown = run(given=joined(ASKED, *SIDES, *prefill)).stdout
    assert "- 4 PersistentVolumeClaims of groups that go at the end stay, such as cache-chat-prefill-0, and" in shown


def test_a_partition_in_a_manifest_of_a_companion_is_told() -> None:
    strategy = "  rolloutStrategy: {type: RollingUpdate, rollingUpdateConfiguration: {partition: 0}}\n"
    shown = run(given=joined(ASKED, *SIDES, PREFILL[0] + strategy, PREFILL[1])).stdout
    assert "the manifest of LeaderWorkerSet chat-prefill states rollingUpdateConfiguration.partition" in shown


def test_groups_that_their_owner_loads_are_waited_for() -> None:
    companions = edited(COMPANIONS, "      replicas: 50%\n", "")
    owned = edited(PAIR, "  touch: RouteOnly\n", f"  touch: RouteOnly\n{companions}")
    counted = [of_name(LWS, name) for name in NAMES]
    shown = run(given=joined(owned, *counted, *WHOLE_PAIR[1:])).stdout
    assert "Companion     + chat-prefill, 4 groups of 2 pods; a release waits for green-prefill, 4 groups\n" in shown
    assert "0 by the release: the owner of chat-green and green-prefill loads their groups\n" in shown
    assert "\n1           1 of 4 + 1 of 4   20%" in shown
    few = [counted[0], edited(counted[1], "  replicas: 4\n", "  replicas: 3\n")]
    shown = run(given=joined(owned, *few, *WHOLE_PAIR[1:])).stdout
    assert "- after the release 3 groups of green-prefill do what 4 groups of chat-prefill do now: scale" in shown


def test_a_file_with_a_companion_is_planned_by_the_rollout_of_the_cluster(world: World, tmp_path: Path) -> None:
    kinds = {(each.resource.api_version, each.resource.kind): each.resource for each in world.server.served}
    for text in WHOLE:
        each = yaml.safe_load(text)
        each["metadata"]["namespace"] = "default"
        world.do(lambda each=each: world.server.create(kinds[each["apiVersion"], each["kind"]], each))  # type: ignore[misc]
    new = tmp_path / "prefill.yaml"
    new.write_text(edited(PREFILL[1], "server:v1", "server:v2"))
    told = json.loads(world.run("plan", "-f", str(new), "-o", "json").stdout)
    change = "green-prefill: server v1 -> v2 (worker)"
    assert (told["rollout"], told["change"]) == ("chat", f"pod labels (worker); {change}")
    assert any(each.startswith("the release begins when chat-green has another") for each in told["cautions"])
