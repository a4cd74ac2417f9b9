"""The manifests of examples/, and the ones of them that a test asks for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rollout_lws.cli.playground import read_manifests

Object = dict[str, Any]
FOLDER = Path(__file__).parents[2] / "examples"
NAMES = tuple(sorted(each.name for each in FOLDER.iterdir() if each.is_dir()))


def manifests(name: str) -> dict[str, Object]:
    """The objects of one example by kind, of each of which it has one."""
    found = read_manifests([str(FOLDER / name)])
    by_kind = {each["kind"]: each for each in found}
    assert len(by_kind) == len(found), name
    return by_kind


def pod_templates(lws: Object) -> dict[str, Object]:
    """The pod templates of an LWS by role; a leader without its own has the workers'."""
    group = lws["spec"]["leaderWorkerTemplate"]
    return {"leader": group.get("leaderTemplate") or group["workerTemplate"], "worker": group["workerTemplate"]}
