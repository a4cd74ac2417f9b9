"""What an undo does to a release: pure functions, by which the command acts and the page says what would happen.

Versions are our hashes, "" for one of which that is not known; ``stable`` is that of the version that serves.
"""

from __future__ import annotations

from typing import Any

from rollout_lws.cli.actions.action_rules import waits_to_leave
from rollout_lws.cli.rollouts import recorded_capacity, releasing
from rollout_lws.cli.sides import called, kept_version, standing_in

Object = dict[str, Any]


def aborts(rollout: Object, version: str, stable: str) -> bool:
    """Whether the release is aborted before the version is put back: when the template is the stable one again, LWS
    deletes all surge groups at once, so their requests have to go first.
    """
    return releasing(rollout) and bool(version) and version == stable and recorded_capacity(rollout).surges


def becomes(rollout: Object, version: str, stable: str) -> str:
    """What becomes of a version that is put into the template."""
    name, on = rollout["metadata"]["name"], releasing(rollout)
    if not version:
        return released(rollout)
    if version == stable:
        return "the release goes back to it" if on else "it is what serves, so nothing restarts"
    if version == ((rollout.get("status") or {}).get("aborted") or {}).get("templateHash"):
        return f"it was aborted, so it waits for `rollout-lws retry {name}`"
    if version == kept_version(rollout):
        return "its groups are still there, and get all requests without steps"
    return released(rollout)


def released(rollout: Object) -> str:
    """What becomes of another version in the template: while another workload stands in for it, it has no groups."""
    made = standing_in(rollout)
    if not made or releasing(rollout):
        return "it is released in steps"
    if waits_to_leave(rollout):
        return f"it waits for `rollout-lws home {rollout['metadata']['name']}`"
    loads = rollout["spec"].get("replicas")
    count = "its groups" if not loads else "1 group" if loads == 1 else f"{loads} groups"
    return f"it is released in steps and loads {count}, and the requests come back from {called(rollout, made)}"


def effect(rollout: Object, version: str, stable: str, what: str) -> str:
    """All that an undo to a version does, of which ``what`` is the name in words."""
    first = "the release is aborted; then " if aborts(rollout, version, stable) else ""
    return f"{first}{what} is in the template again: {becomes(rollout, version, stable)}"
