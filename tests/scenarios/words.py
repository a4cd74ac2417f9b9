"""What every status says: whatever is not at rest says why, and where a person has to act, what ends it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
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
