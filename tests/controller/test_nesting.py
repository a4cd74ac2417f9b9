"""An object that the API server takes is one that the controller can read, however deep it is."""

from __future__ import annotations

import subprocess
import sys

#: As deep as Kubernetes reads JSON, less what stands around it.
_DEEP = 9_990
_READS = f"""
import asyncio, sys
from rollout_lws.controller import process
from rollout_lws.controller.trimmed import trimmed_revision
from rollout_lws.settings import Settings

async def serve(settings):
    head, deep = b'{{"metadata":{{"name":"a","resourceVersion":"1"}},"data":', b'{{"a":' * {_DEEP}
    body = head + deep + b"1" + b"}}" * {_DEEP} + b"}}"
    print(trimmed_revision(body).metadata.name)

process._serve = serve
asyncio.run(process.run(Settings()))
"""


def test_a_revision_nested_as_deep_as_a_server_takes_is_read() -> None:
    done = subprocess.run([sys.executable, "-c", _READS], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "a\n"), done.stderr[-500:]
