"""What every status says: who is not at rest says why, and who waits for a person says what ends it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

#: What a person can do, or what happens by itself, as messages of Stalled say it.
_WAY_OUT = re.compile(
    r"kubectl|UTC|it goes on|goes on by itself|it is tried again|is put back at"
    r"|\b(add|allow|annotate|apply|correct|create|delete|finish|free|give|have|install|list|look|lower|make|match|name|pause|raise|release"
    r"|remove|rename|request|restore|scale|set|state|upgrade|use|wait|write)\b",
    re.IGNORECASE,
)


def says_why(rollout: Mapping[str, Any]) -> None:
    """Whatever is not at rest says why; and where a person has to look, what ends it."""
    status = rollout.get("status") or {}
    told = {each["type"]: each for each in status.get("conditions") or () if each["status"] == "True"}
    for kind in ("Reconciling", "Stalled", "Progressing", "Terminating"):
        if kind in told:
            text = told[kind].get("message", "")
            assert re.search(r"[^\s:;,]$", text), (
                f"{kind}/{told[kind]['reason']} of {status.get('summary')} says {text!r}"
            )
    if "Stalled" in told:
        text = told["Stalled"]["message"]
        assert _WAY_OUT.search(text), f"nothing ends {told['Stalled']['reason']}: {text!r}"
    state = (status.get("summary") or {}).get("state")
    assert state in (None, "", "Healthy", "Disabled") or status.get("message"), f"{state} says nothing: {status}"
