"""What every status says: whatever is not at rest says why, where a person has to act, what ends it, and since when a
release did what.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from rollout_lws.rollout.decision import Verdict


def says_why(rollout: Mapping[str, Any]) -> None:
    """Whatever is not at rest says why."""
    status = rollout.get("status") or {}
    told = {each["type"]: each for each in status.get("conditions") or () if each["status"] == "True"}
    for kind in ("Reconciling", "Stalled", "Progressing", "Terminating"):
        if kind in told:
            text = told[kind].get("message", "")
            assert re.search(r"[^\s:;,]$", text), (
                f"{kind}/{told[kind]['reason']} of {status.get('summary')} says {text!r}"
            )
    state = (status.get("summary") or {}).get("state")
    assert state in (None, "", "Healthy", "Disabled") or status.get("message"), f"{state} says nothing: {status}"


def says_what_ends_it(verdict: Verdict, command: Callable[[str], str]) -> None:
    """Stalled is what needs a person or goes on by itself; where a command of ours ends it, the message has it.

    ``command`` gives what is typed for a verb.
    """
    known = verdict.needs_person or verdict.goes_on
    assert verdict.condition != "Stalled" or known, f"nothing ends {verdict}"
    if verdict.needs_person and verdict.verbs:
        assert any(command(verb) in verdict.message for verb in verdict.verbs), f"{verdict.verbs} end {verdict}"


def says_since_when(rollout: Mapping[str, Any]) -> None:
    """What a controller has just written: a timeline in order, whose last entry is where the release is now."""
    status = rollout.get("status") or {}
    entries = status.get("timeline") or []
    moments = [each["at"] for each in entries]
    assert moments == sorted(moments) and len(entries) <= 64, f"no timeline: {entries}"
    told = [(each.get("step"), each["state"], each.get("desired"), each.get("applied")) for each in entries]
    assert all(one != other for one, other in pairwise(told)), f"twice the same: {entries}"
    phase, ending = status.get("phase"), status.get("finalising")
    keeps = phase == "Healthy" and "since" in (status.get("kept") or {})
    if phase == "Progressing" or (ending and not keeps):
        sub, shared = status.get("canaryStatus") or status["blueGreenStatus"], status.get("traffic") or {}
        where = (None, ending["task"]) if ending else (sub["currentStepIndex"], sub["currentStepState"])
        weights = ((shared.get(each) or {}).get("weight") for each in ("desired", "applied"))
        assert told and told[-1] == (*where, *weights), f"{told[-1:]} is not where {status} is"
    else:
        assert not told or told[-1] == (None, "Completed", None, None), f"{told[-1]} is no end of {status}"
