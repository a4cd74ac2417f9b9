"""One line of the page's list for each Rollout. Pure."""

from __future__ import annotations

from typing import Any

from rollout_lws.cli.rollouts import message, style, summary
from rollout_lws.cli.sides import called, named, tells_share

Object = dict[str, Any]
#: Of a message in the list; the page of the release has all of it.
_LONGEST = 300


def row(rollout: Object) -> Object:
    """What the list shows of a Rollout, also of one that no controller has written so."""
    meta = rollout["metadata"]
    known = {"uid": meta["uid"], "namespace": meta["namespace"], "name": meta["name"]}
    try:
        return {**known, **_told(rollout)}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        # One of them must not hide all others.
        empty = _told({"metadata": meta, "spec": {"workloadRef": {"name": ""}}})
        return {**known, **empty, "message": f"this Rollout cannot be read: {error!r}"[:_LONGEST]}


def _told(rollout: Object) -> Object:
    """Times are the API server's, as RFC 3339. ``state`` is "" before the controller's first verdict, ``weight`` is
    None where requests are not shared, and where it is not the share of the new version.
    """
    meta, status, said = rollout["metadata"], rollout.get("status") or {}, summary(rollout)
    counts, applied = status.get("groups") or {}, (status.get("traffic") or {}).get("applied")
    return {
        "workload": called(rollout, named(rollout)),
        "state": said["state"],
        "step": said["step"],
        "steps": len(style(rollout).get("steps") or ()),
        "at": int(status.get("currentStepIndex") or 0),
        "weight": None if applied is None or not tells_share(rollout) else int(applied.get("weight") or 0),
        "traffic": said["traffic"],
        "new": counts.get("new"),
        "stable": counts.get("stable"),
        "accelerators": said["accelerators"],
        "since": said["since"],
        "message": message(rollout)[:_LONGEST],
        "created": meta.get("creationTimestamp") or "",
    }
