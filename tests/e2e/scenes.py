"""Where tests of this lane take place: which control planes and which namespaces there are, for whoever has to look at
them after a failure.

A test that fails knows what it expected, not where everything is; pytest knows that it failed, and nothing of clusters.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.kubectl.programs import Programs


@dataclass(slots=True)
class Stage:
    """A control plane that logs to the directory ``logs``, its audit log among them; ``ended`` is epoch seconds."""

    logs: Path
    audit_log: Path
    ended: float | None = None


@dataclass(slots=True)
class Scene:
    """A story's ``namespace`` on the cluster that the kubeconfig ``admin`` leads to, and the ``programs`` it runs.

    ``began`` is epoch seconds; ``error`` is what ended it, None while it goes on and when it ended well.
    """

    admin: Path
    namespace: str
    programs: Programs
    began: float = field(default_factory=time.time)
    error: BaseException | None = None


class Record:
    """All stages and scenes of this process, in the order of their beginnings."""

    def __init__(self) -> None:
        self._stages: list[Stage] = []
        self._scenes: list[Scene] = []

    @contextmanager
    def stage(self, logs: Path, audit_log: Path) -> Iterator[None]:
        """A control plane from here to the end of the block."""
        begun = Stage(logs, audit_log)
        self._stages.append(begun)
        try:
            yield
        finally:
            begun.ended = time.time()

    @contextmanager
    def scene(self, admin: Path, namespace: str, programs: Programs) -> Iterator[None]:
        """A story from here to the end of the block."""
        begun = Scene(admin, namespace, programs)
        self._scenes.append(begun)
        try:
            yield
        except BaseException as error:
            begun.error = error
            raise

    def stages(self, since: float) -> Sequence[Stage]:
        """Those that ran at ``since`` (epoch seconds) or later."""
        return [each for each in self._stages if each.ended is None or each.ended >= since]

    def scenes(self, error: BaseException, since: float) -> Sequence[Scene]:
        """Where ``error`` came from; when it came from none of them, those that began at ``since`` or later."""
        blamed = [each for each in self._scenes if each.error is error]
        return blamed or [each for each in self._scenes if each.began >= since]


#: Of this process: planes and worlds are made deep inside of tests, and looked for by pytest's hooks.
record = Record()
