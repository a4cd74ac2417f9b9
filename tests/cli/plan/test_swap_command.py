"""Plans of swaps from files: what the command prints, and its exit codes."""

from __future__ import annotations

import json
import re

from tests.cli.lint.manifests import LWS, ROUTE, edited, joined, unnumbered
from tests.cli.lint.swapping import BY_NAME, SWAP, WHOLE_SWAP
from tests.cli.plan.test_pair_command import run

SHOWN = """\
chat  LeaderWorkerSet/chat  ns default   4 groups of 2 pods, promotion Swap
Requests      go to chat, 4 groups; a release makes as many of chat-canary, moves them there, and scales chat to 0
Change        none yet: this is how the next version would be released
Model loads   4, 3 one after the other, at most 4 groups more than today
Takes         about 40m39s, and the time until step 1 is approved; a group loads for about 10m, as given
Disrupts      no group that gets requests
Way back      at once until the roles change, by abort; after that a release of the former version loads 4 groups
Then          the next release goes the other way, from chat-canary to chat

STEP        NEW   OLD   LOADS   SHARE   LOAD NEW   LOAD OLD   BUSIEST   TAKES    THEN        WAY BACK
1           1     4     1       20%     0.80       0.80       1.00      10m3s    approval    at once
2           2     4     1       40%     0.80       0.60       0.80      20m      pause 10m   at once
promotion   4     0     2       100%    1.00       0.00       1.00      10m36s               at once
after       4     0     0               1.00                  1.00                           4 loads

Will be written
"""
NUMBERED = edited(SWAP, "  strategy:", "  replicas: 4\n  strategy:")


def test_a_plan_from_files_says_which_workload_serves_before_and_after() -> None:
    result = run("--load-time", "10m", given=joined(NUMBERED, *WHOLE_SWAP[1:]))
    assert result.stdout.startswith(SHOWN)
    assert re.search(r"LeaderWorkerSet chat-canary +made, changed +up to 4 groups of the new version", result.stdout)
    assert result.exit_code == 0


def test_the_number_is_the_rollouts_whatever_the_manifest_defaults_to() -> None:
    told = json.loads(run("-o", "json", given=joined(NUMBERED, *WHOLE_SWAP[1:])).stdout)
    assert (told["replicas"], told["swap"]["active"]) == (4, {"name": "chat", "groups": 4})


def test_replicas_in_the_manifest_and_a_service_by_name_end_with_1() -> None:
    applied = run(given=joined(SWAP, LWS, *WHOLE_SWAP[2:]))
    assert "LeaderWorkerSet chat gets spec.replicas from a manifest (kubectl apply)" in applied.stdout
    by_name = run(given=joined(SWAP, unnumbered(LWS), BY_NAME, ROUTE))
    assert "Service chat-api selects groups of chat only" in by_name.stdout
    assert (applied.exit_code, by_name.exit_code) == (1, 1)
