"""Plans of pairs that shift from files: what the command prints, and its exit codes."""

from __future__ import annotations

import json

from tests.cli.lint.manifests import GREEN, LWS, WHOLE_PAIR, edited, joined
from tests.cli.plan.test_pair_command import SCALED, SIDES, run

#: A pair whose sides have 5 groups together at most; shares are in proportion.
SHIFTED = edited(SCALED, "      capacity: Pair\n", "      capacity: Pair\n      shift: {}\n")
for _traffic in ("20%", "40%"):
    SHIFTED = edited(SHIFTED, f"          traffic: {_traffic}\n", "          traffic: auto\n")
LACKING = edited(SHIFTED, "shift: {}", "shift: {maxExtraGroups: 0, maxUnavailableGroups: 1}")
SHOWN = """\
chat  LeaderWorkerSet/chat and chat-green  ns default   4 groups of 2 pods, capacity Pair with shift
Requests      go to chat, 4 groups; a release moves them to chat-green, which has 1 and gets groups as those of chat go
Change        none yet: this is how the next version would be released
Model loads   4, 4 one after the other, at most 1 group more than today
Takes         about 51m48s, and the time until step 1 is approved; a group loads for about 10m, as given
Disrupts      no group that gets requests
Way back      by abort until the roles change, up to 3 loads; after that by a release of chat (start), 4 loads

STEP        NEW   OLD   LOADS    SHARE   LOAD NEW   LOAD OLD   BUSIEST   TAKES    THEN        WAY BACK
1           1     3     1        25%     1.00       1.00       1.00      10m3s    approval    1 load, 10m
2           2     2     1        50%     1.00       1.00       1.00      20m36s   pause 10m   2 loads, 10m33s
promotion   4     0     2 in 2   100%    1.00       0.00       1.00      21m9s                up to 3 loads, 21m9s
after       4     0     0                1.00                  1.00                           4 loads

Will be written
"""
PODS = (
    "  Pods                                 changed                  those that are about to go lose a label of their"
)


def test_the_plan_is_a_table_of_what_comes_and_goes_in_each_step() -> None:
    result = run("--load-time", "10m", given=joined(SHIFTED, *SIDES, *WHOLE_PAIR[3:]))
    assert result.stdout.startswith(SHOWN)
    assert "changed                  its replicas, fewer as the other side gets some, 0 at the end;" in result.stdout
    assert PODS in result.stdout
    assert "  - LeaderWorkerSet chat-green has 1 group and no requests: it is scaled to 0 before" in result.stdout
    assert result.exit_code == 0


def test_without_the_time_of_a_load_its_waits_are_told() -> None:
    given = joined(LACKING, *SIDES, *WHOLE_PAIR[3:])
    shown = run(given=given).stdout
    assert "Model loads   4, 3 one after the other, no group more than today\n" in shown
    assert "Takes         3 loads one after the other and 12m21s, and the time until step 1 is approved;" in shown
    told = json.loads(run("-o", "json", given=given).stdout)
    assert [(each["loadsInARow"], each["waitSeconds"]) for each in told["steps"]] == [(1, 36), (1, 636), (1, 69)]
    assert (told["totals"]["modelLoads"], told["totals"]["seconds"]) == (4, None)


def test_services_that_no_file_has_are_made_up_so_that_single_groups_can_be_taken_out() -> None:
    result = run("-o", "json", given=joined(SHIFTED, *SIDES))
    told = json.loads(result.stdout)
    assert (told["refusals"], result.exit_code) == ([], 0)
    assert any("groups of chat that go lose label app" in each for each in told["cautions"])


def test_one_group_stays_until_the_roles_change() -> None:
    one = edited(SHIFTED, "  replicas: 4\n", "  replicas: 1\n")
    result = run("--load-time", "10m", given=joined(one, *SIDES, *WHOLE_PAIR[3:]))
    assert "\nWay back      at once until the roles change, by abort; after that by a release of chat" in result.stdout
    assert PODS not in result.stdout
    result = run(given=joined(edited(one, "shift: {}", "shift: {maxExtraGroups: 0}"), *SIDES, *WHOLE_PAIR[3:]))
    assert "with neither an extra group nor one that may lack, no group can come or go" in result.stdout
    assert result.exit_code == 1


def test_claims_of_all_groups_that_go_are_told() -> None:
    claims = "  leaderWorkerTemplate:\n    volumeClaimTemplates: [{metadata: {name: cache}, spec: {}}]\n"
    sides = (edited(each, "  leaderWorkerTemplate:\n", claims) for each in SIDES)
    result = run(given=joined(SHIFTED, *sides, *WHOLE_PAIR[3:]))
    assert (
        "- 8 PersistentVolumeClaims of groups that go stay, such as cache-chat-0, and groups of a later"
        in result.stdout
    )


def test_shift_is_not_for_sides_that_their_owner_scales() -> None:
    kept = edited(SHIFTED, "  replicas: 4\n  activeSide: chat\n", "  touch: RouteOnly\n")
    result = run(given=joined(kept, LWS, GREEN, *WHOLE_PAIR[3:]))
    assert "with touch: RouteOnly no workload is scaled: remove it, or remove touch" in result.stdout
    assert "STEP" not in result.stdout
    assert result.exit_code == 1
