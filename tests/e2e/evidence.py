"""What a failed test leaves behind: logs of the control plane and of the controller, what the controller asked of the
API server, and the objects as they stood.

A story that fails once in a hundred runs is understood from these, or never.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import yaml

from rollout_lws.errors import ApiError, Unreachable
from rollout_lws.kube.client import Client
from rollout_lws.objects.resources import CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, Resource
from tests.e2e import audit
from tests.e2e.plane import connected
from tests.e2e.scenes import Record, Scene, Stage
from tests.e2e.world import KINDS

#: Names the directory that holds a directory for each failed test.
VARIABLE = "ROLLOUT_LWS_E2E_FAILURES"
_DEFAULT = ".e2e-failures"
_KINDS: tuple[Resource, ...] = (*KINDS, CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS)
#: A server that does not answer is part of the evidence, and no reason to wait.
_ANSWER_SECONDS = 5.0


def directory(test: str) -> Path:
    """Where the evidence of ``test`` (pytest's node id) goes; nothing is made."""
    return Path(os.environ.get(VARIABLE) or _DEFAULT).absolute() / re.sub(r"[^\w.-]+", "-", test).strip("-")


def keep(record: Record, test: str, error: BaseException, since: float) -> Path | None:
    """Put what there is about ``test``, which began at ``since`` and failed with ``error``, into its directory.

    What an earlier run left there goes. None when the test had no control plane.
    """
    stages, scenes = record.stages(since), record.scenes(error, since)
    if not stages:
        return None
    into = directory(test)
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    for number, stage in enumerate(stages):
        _keep_logs(stage, into / f"plane-{number}" if number else into / "plane", scenes)
    for scene in scenes:
        _keep_scene(scene, into / scene.namespace)
    return into


def _keep_logs(stage: Stage, into: Path, scenes: Iterable[Scene]) -> None:
    shutil.copytree(stage.logs, into, ignore=lambda _, names: [name for name in names if not name.endswith(".log")])
    for scene in scenes if stage.audit_log.exists() else ():
        lines = audit.lines(stage.audit_log, scene.namespace)
        (into / f"audit-{scene.namespace}.log").write_bytes(b"".join(lines))


def _keep_scene(scene: Scene, into: Path) -> None:
    into.mkdir()
    for number, program in enumerate(scene.programs.started):
        (into / f"process-{number}.log").write_text(f"$ {program.name}\n{program.output}\n")
    # The test's own event loop is between two runs, and nobody else's business.
    with ThreadPoolExecutor(1) as apart:
        apart.submit(lambda: asyncio.run(_dump(scene, into))).result()


async def _dump(scene: Scene, into: Path) -> None:
    """The objects of each kind in a file of its name, or the reason why they cannot be told."""
    if not scene.admin.exists():
        (into / "objects.txt").write_text("the control plane has ended: no object can be read any more\n")
        return
    async with connected(scene.admin) as connection:
        client = Client(connection, timeout=_ANSWER_SECONDS)
        for resource in _KINDS:
            try:
                told = json.loads(await client.list(resource, scene.namespace))["items"]
            except Unreachable as error:
                (into / "objects.txt").write_text(f"{error}\n")
                return
            except ApiError as error:
                told = str(error)
            if told:
                (into / f"{resource}.yaml").write_text(yaml.safe_dump(told, sort_keys=False))
