"""The kubectl of this machine: whether there is one that is new enough, and how tests run it.

Tests that need it carry the marker ``kubectl`` and nothing else; tests/conftest.py skips them all with one line where
it is missing.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import shutil
import subprocess
from pathlib import Path

import yaml

OLDEST_MINOR = 28
HOW_TO_GET_IT = f"install 1.{OLDEST_MINOR} or newer: https://kubernetes.io/docs/tasks/tools/"


@functools.cache
def missing() -> str:
    """Why no test can use kubectl here; empty when they can."""
    program = shutil.which("kubectl")
    if program is None:
        return "there is no kubectl on the PATH"
    answer = subprocess.run([program, "version", "--client", "-o", "json"], capture_output=True, check=False)
    try:
        minor = int(json.loads(answer.stdout)["clientVersion"]["minor"].rstrip("+"))
    except (ValueError, KeyError):
        return f"{program} does not tell its version"
    return "" if minor >= OLDEST_MINOR else f"{program} is 1.{minor}"


class Kubectl:
    """kubectl with a kubeconfig, a home for its cache, and a place for refused edits of its own."""

    def __init__(self, kubeconfig: Path, home: Path) -> None:
        self.environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "HOME": str(home), "TMPDIR": str(home)}

    async def start(self, *arguments: str, **environment: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            "kubectl",
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={**self.environment, **environment},
        )

    async def run(self, *arguments: str, stdin: object = None, code: int | None = 0, **environment: str) -> str:
        """What it printed; it must end within 30 s, with ``code`` (None: any). ``stdin`` is written to it as YAML, a
        text as it is.
        """
        process = await self.start(*arguments, **environment)
        text = stdin if isinstance(stdin, str) or stdin is None else yaml.safe_dump(stdin)
        fed = None if text is None else text.encode()
        try:
            output = (await asyncio.wait_for(process.communicate(fed), 30))[0].decode()
        except TimeoutError:
            process.kill()
            output = (await process.communicate())[0].decode()
            raise AssertionError(f"kubectl {' '.join(arguments)} did not end within 30 s\n{output}") from None
        assert code is None or process.returncode == code, f"kubectl {' '.join(arguments)}\n{output}"
        return output
