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
