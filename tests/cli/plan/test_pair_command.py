"""Plans of pairs over HTTP and from files: what the command prints, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from rollout_lws.cli.main import program
from rollout_lws.errors import RolloutLwsError, UsageError
from tests.cli.conftest import World
from tests.cli.lint.manifests import GREEN, LWS, PAIR, PAIR_ROUTE, WHOLE_PAIR, edited, joined

SHOWN = """\
chat  LeaderWorkerSet/chat and chat-green  ns default   groups of 2 pods, capacity Pair
Requests      go to chat, 4 groups; a release moves them to chat-green, 4 groups
Change        none yet: this is how the next version would be released
Model loads   0 by the release: the owner of chat-green loads its groups
Takes         about 10m36s from when the groups of chat-green are ready, and the time until step 1 is approved
Disrupts      no group that gets requests
Way back      at once until the roles change, by abort; after that by a release of chat (start), while it has its groups

STEP        WAITS FOR   SHARE   LOAD NEW   LOAD OLD   BUSIEST   TAKES   THEN        WAY BACK
1           1 of 4      20%     0.20       0.80       1.00      3s      approval    at once
2           2 of 4      40%     0.40       0.60       0.80      10m     pause 10m   at once
promotion   4 of 4      100%    1.00       0.00       1.00      33s                 at once
after                   100%    1.00       0.00       1.00                          a release of chat

Will be written
"""


#: A pair whose releases scale both sides: no manifest states their replicas.
SCALED = edited(PAIR, "  touch: RouteOnly\n", "  replicas: 4\n  activeSide: chat\n")
SIDES = tuple(edited(each, "  replicas: 4\n", "") for each in (LWS, GREEN))
SHOWN_SCALED = """\
chat  LeaderWorkerSet/chat and chat-green  ns default   4 groups of 2 pods, capacity Pair
Requests      go to chat, 4 groups; a release loads as many of chat-green, which has 1, and moves them there
Change        none yet: this is how the next version would be released
Model loads   4, 3 one after the other, at most 4 groups more than today
Takes         about 40m36s, and the time until step 1 is approved; a group loads for about 10m, as given
Disrupts      no group that gets requests
Way back      at once until the roles change, by abort; after that by a release of chat (start), which loads 4 groups

STEP        NEW   OLD   LOADS   SHARE   LOAD NEW   LOAD OLD   BUSIEST   TAKES    THEN        WAY BACK
1           1     4     1       20%     0.80       0.80       1.00      10m3s    approval    at once
2           2     4     1       40%     0.80       0.60       0.80      20m      pause 10m   at once
promotion   4     0     2       100%    1.00       0.00       1.00      10m33s               at once
after       4     0     0               1.00                  1.00                           4 loads

Will be written
"""


def run(*arguments: str, given: str) -> Result:
    result = CliRunner().invoke(program, ["plan", "-f", "-", "--offline", *arguments], input=given)
    if result.exception is not None and not isinstance(result.exception, SystemExit | RolloutLwsError):
        raise result.exception
    return result


def test_a_plan_from_files_is_a_table_of_what_each_step_waits_for() -> None:
    result = run(given=joined(*WHOLE_PAIR))
    assert result.stdout.startswith(SHOWN)
    assert (
        "  HTTPRoute chat                       changed                  weights of the two sides, which"
        in result.stdout
    )
    assert result.exit_code == 0


def test_what_no_file_has_is_made_up_for_both_sides() -> None:
    complete, bare = (
        json.loads(run("-o", "json", given=joined(*given)).stdout) for given in (WHOLE_PAIR, (PAIR, LWS, GREEN))
    )
    (first, *more) = bare["cautions"]
    assert first.endswith("and fit: Service chat-api, Service green-api, HTTPRoute chat")
    assert ({**bare, "cautions": more}, bare["refusals"]) == (complete, [])
    assert complete["totals"]["modelLoads"] == 0
    assert complete["pair"]["active"] == {"name": "chat", "groups": 4}


def test_the_side_that_is_named_is_the_active_one_of_a_route_that_is_made_up() -> None:
    named = edited(PAIR, "  touch:", "  activeSide: chat-green\n  touch:")
    told = json.loads(run("-o", "json", given=joined(named, LWS, GREEN)).stdout)
    assert (told["workload"], told["pair"]["inactive"]["name"], told["possible"]) == ("chat-green", "chat", True)


@pytest.mark.parametrize(("given", "lacks"), [((PAIR, LWS), "chat-green"), ((PAIR, GREEN), "chat")])
def test_both_workloads_are_needed(given: tuple[str, ...], lacks: str) -> None:
    result = run(given=joined(*given))
    assert isinstance(result.exception, UsageError)
    assert f"rollout/chat refers to LeaderWorkerSet '{lacks}', which is not in the files" in str(result.exception)


def test_what_the_controller_would_refuse_ends_with_1() -> None:
    result = run(given=joined(*WHOLE_PAIR[:-1], edited(PAIR_ROUTE, "weight: 0", "weight: 30")))
    assert "Will not be possible\n  - requests go to both chat and chat-green, or to neither" in result.stdout
    assert result.exit_code == 1


def test_the_plan_of_a_pair_that_is_scaled_is_a_table_of_what_each_step_loads() -> None:
    result = run("--load-time", "10m", given=joined(SCALED, *SIDES, *WHOLE_PAIR[3:]))
    assert result.stdout.startswith(SHOWN_SCALED)
    assert "  LeaderWorkerSet chat-green           changed                  its replicas, up to 4; its" in result.stdout
    assert "  - LeaderWorkerSet chat-green has 1 group and no requests: it is scaled to 0 before" in result.stdout
    assert result.exit_code == 0


def test_how_long_a_scaled_pair_takes_is_known_when_a_load_is() -> None:
    given = joined(SCALED, *SIDES)
    unknown, known = (json.loads(run("-o", "json", *more, given=given).stdout) for more in ((), ("--load-time", "10m")))
    assert (unknown["totals"]["seconds"], known["totals"]["seconds"]) == (None, 2436)
    assert [each["waitSeconds"] for each in unknown["steps"]] == [3, 600, 33]
    assert unknown["pair"]["wayBackAfterwards"] == known["pair"]["wayBackAfterwards"] == {"modelLoads": 4}
    assert [each["groups"] for each in known["steps"]] == [
        {"new": 1, "old": 4, "extra": 1},
        {"new": 2, "old": 4, "extra": 2},
        {"new": 4, "old": 0, "extra": 4},
    ]


def test_what_a_scaled_pair_cannot_begin_with_ends_with_1() -> None:
    result = run(given=joined(SCALED, SIDES[0], GREEN))
    assert "- LeaderWorkerSet chat-green gets spec.replicas from a manifest (kubectl apply)" in result.stdout
    assert "it is scaled to 0 before" not in result.stdout
    assert result.exit_code == 1
    result = run(given=joined(edited(SCALED, "  activeSide: chat\n", ""), *SIDES))
    assert "name the side that serves in spec.activeSide, or scale chat-green to 0" in result.stdout
    assert result.exit_code == 1


def test_claims_of_the_side_that_is_scaled_to_0_are_told() -> None:
    claims = "  leaderWorkerTemplate:\n    volumeClaimTemplates: [{metadata: {name: cache}, spec: {}}]\n"
    sides = (edited(each, "  leaderWorkerTemplate:\n", claims) for each in SIDES)
    result = run(given=joined(SCALED, *sides))
    assert "- 8 PersistentVolumeClaims of groups that go at the end stay, such as cache-chat-0, and" in result.stdout
    assert "set persistentVolumeClaimRetentionPolicy: {whenScaled: Delete, whenDeleted: Delete} in" in result.stdout


def test_kueue_admits_the_groups_of_the_side_that_is_loaded() -> None:
    queued = edited(
        SIDES[1], "  name: chat-green\n", "  name: chat-green\n  labels: {kueue.x-k8s.io/queue-name: team}\n"
    )
    words = "- Kueue admits groups by queue team: whether it has quota for 4 more groups is not known here"
    assert words in run(given=joined(SCALED, SIDES[0], queued)).stdout


def test_a_share_by_groups_goes_by_those_that_a_step_makes() -> None:
    shared = edited(
        SCALED, "        - replicas: 1\n          traffic: 20%\n", "        - replicas: 9\n          traffic: auto\n"
    )
    told = json.loads(run("-o", "json", given=joined(shared, *SIDES)).stdout)
    assert (told["steps"][0]["share"], [each for each in told["cautions"] if "auto" in each]) == (0.5, [])


def test_a_partition_in_a_manifest_of_a_scaled_pair_is_told() -> None:
    strategy = "  rolloutStrategy: {type: RollingUpdate, rollingUpdateConfiguration: {partition: 0}}\n"
    words = "the manifest of LeaderWorkerSet chat-green states rollingUpdateConfiguration.partition"
    assert words in run(given=joined(SCALED, SIDES[0], SIDES[1] + strategy)).stdout
    assert words not in run(given=joined(PAIR, LWS, GREEN + strategy)).stdout


def test_a_file_with_a_side_is_planned_by_the_rollout_of_the_cluster(world: World, tmp_path: Path) -> None:
    kinds = {(each.resource.api_version, each.resource.kind): each.resource for each in world.server.served}
    for text in WHOLE_PAIR:
        each = yaml.safe_load(text)
        each["metadata"]["namespace"] = "default"
        world.do(lambda each=each: world.server.create(kinds[each["apiVersion"], each["kind"]], each))  # type: ignore[misc]
    new = tmp_path / "green.yaml"
    new.write_text(edited(GREEN, "server:v1", "server:v2"))
    by_file = world.run("plan", "-f", str(new), "-o", "json")
    by_name = world.run("plan", "chat", "-o", "json")
    told, known = json.loads(by_file.stdout), json.loads(by_name.stdout)
    assert (told["rollout"], told["pair"], known["pair"]) == ("chat", known["pair"], told["pair"])
    assert (told["change"], known["change"]) == ("server v1 -> v2 (worker), pod labels (worker)", None)
