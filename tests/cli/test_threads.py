"""Watches convert what they are told in threads, and the first to do so are several at once."""

from __future__ import annotations

import subprocess
import sys

#: In a process of its own, since a type is new to one only once, and since what fails ends the process.
_AT_ONCE = """
import sys
import threading
from rollout_lws.cli.events.event_log import happening
from rollout_lws.cli.releases import typed
from rollout_lws.objects.workloads import Pod, StatefulSet
from rollout_lws.targets.table import TARGETS

sys.setswitchinterval(1e-6)
meta = {"name": "a", "namespace": "b", "uid": "c"}
event = {"metadata": meta, "involvedObject": {}, "lastTimestamp": "2026-01-01T00:00:00Z"}
kinds = [*TARGETS, Pod, StatefulSet, *TARGETS, Pod, StatefulSet]
calls = [lambda kind=kind: typed({"metadata": meta, "spec": {}, "status": {}}, kind) for kind in kinds]
calls += [lambda: happening(event)] * 2
together = threading.Barrier(len(calls))


def run(call):
    together.wait()
    try:
        call()
    except ValueError:
        # That something is missing is found when the type is known.
        pass


threads = [threading.Thread(target=run, args=(call,)) for call in calls]
for each in threads:
    each.start()
for each in threads:
    each.join()
"""
#: Processes, of which every other one ended with a signal while types were made known by their first use.
_TIMES = 6


def test_types_are_known_before_several_threads_convert_to_them() -> None:
    ended = [subprocess.run([sys.executable, "-c", _AT_ONCE], capture_output=True, text=True) for _ in range(_TIMES)]
    assert [(each.returncode, each.stderr) for each in ended] == [(0, "")] * _TIMES
