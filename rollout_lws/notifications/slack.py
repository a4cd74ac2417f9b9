"""Renders a notification as a message of Slack's incoming webhooks: blocks, and a text for what shows no blocks.

All that is told is data: it is escaped, so that no word of a container or of a user is a mention or a link.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from rollout_lws.notifications.data import Data, Gate, Notification

CONTENT_TYPE = "application/json; charset=utf-8"
#: Characters of a text, of a field of a section, and fields of a section, that Slack takes at most.
_TEXT, _FIELD, _FIELDS = 3000, 2000, 10
#: Gates and commands that are told each by itself.
_GATES, _COMMANDS = 10, 5
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def slack(told: Notification) -> bytes:
    """The body."""
    data = told.data
    title = f"{_place(data)}: {data.reason}"
    body = {
        "text": _cut(f"{title}: {data.message}", _TEXT),
        "unfurl_links": False,
        "unfurl_media": False,
        "blocks": [*_blocks(data, title)],
    }
    return msgspec.json.encode(body)


def _blocks(data: Data, title: str) -> Iterator[dict[str, Any]]:
    yield _section(f"*{_cut(title, _FIELD)}*\n{_cut(data.message, _FIELD)}"[:_TEXT])
    facts = [*_facts(data)]
    if facts:
        yield {"type": "section", "fields": [_words(f"*{name}*\n{_cut(text, 500)}") for name, text in facts[:_FIELDS]]}
    for gate in data.gates[:_GATES]:
        yield _section(_cut("; ".join(_figures(gate)), _TEXT))
    for command in data.next[:_COMMANDS]:
        yield _section(f"`{_cut(command, _FIELD)}`")
    yield {"type": "context", "elements": [_words(_cut(f"{data.type} {data.time:%Y-%m-%d %H:%M:%S} UTC", _FIELD))]}


def _place(data: Data) -> str:
    rollout = data.rollout
    cluster = f"{rollout.cluster}: " if rollout.cluster else ""
    return f"{cluster}Rollout {rollout.namespace}/{rollout.name}"


def _facts(data: Data) -> Iterator[tuple[str, str]]:
    """Names and values of what is known, in the order in which people ask."""
    if data.state:
        yield "State", data.state
    if data.step is not None:
        yield "Step", f"{data.step.index}/{data.step.of}"
    if data.weight is not None:
        weight = data.weight
        asked = "" if weight.applied == weight.desired else f" ({weight.desired}% asked for)"
        yield "Requests to the new version", f"{weight.applied or 0}%{asked}"
    for name, version, count in (
        ("Stable", data.versions.stable, data.groups.stable),
        ("New", data.versions.new, data.groups.new),
    ):
        if version is not None:
            groups = f", groups {count.ready}/{count.total} ready" if count is not None else ""
            yield name, f"{version.release or version.revision or version.template_hash}{groups}"
    if data.about.kind != "Rollout":
        yield "About", f"{data.about.kind} {data.about.name}"


def _figures(gate: Gate) -> Iterator[str]:
    """What decided, as short as it goes."""
    yield f"Gate {gate.name} ({gate.kind}): {gate.result}"
    if gate.value is not None:
        limit = f", limit {gate.limit}" if gate.limit is not None else ""
        stable = f", stable {gate.stable_value}" if gate.stable_value is not None else ""
        yield f"new {gate.value}{stable}{limit}"
    if gate.share is not None:
        yield f"{gate.share} slow or failed, between {gate.share_from} and {gate.share_to}, {gate.share_limit} allowed"
    if gate.samples is not None:
        stable = f" and {gate.stable_samples:,} of stable" if gate.stable_samples is not None else ""
        yield f"{gate.samples:,} requests{stable}"


def _section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": _words(text)}


def _words(text: str) -> dict[str, Any]:
    """Escaped text; ``verbatim`` keeps Slack from making links of what looks like one."""
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def _cut(text: str, limit: int) -> str:
    """Escaped, in at most so many characters, no escape of which is cut."""
    whole = text.translate(_ESCAPES)
    if len(whole) <= limit:
        return whole
    cut = whole[: limit - 1]
    begun = cut.rfind("&")
    return f"{cut[:begun] if begun > cut.rfind(';') else cut}…"
