"""The state of a pod's containers as a function of their age: starting, ready, crashed, backing off."""

from __future__ import annotations

from dataclasses import dataclass

from rollout_lws.sandbox.behaviours.faults import Script

#: The real kubelet's: 10 s after the second crash, doubled up to five minutes, reset after ten good minutes.
_FIRST_BACK_OFF, _LONGEST_BACK_OFF, _GOOD_RUN = 10.0, 300.0, 600.0
#: How long a container of a CrashLoopBackOff pod runs each time, in seconds.
_SHORT_RUN = 1.0


@dataclass(frozen=True, slots=True)
class Stage:
    """The state of the containers; ``until`` is the age in seconds at which it changes, None for never.

    ``waiting`` is the reason while they do not run, ``back_off`` the seconds between crash and restart.
    """

    ready: bool = False
    restarts: int = 0
    waiting: str = ""
    back_off: float = 0.0
    until: float | None = None


def stage(script: Script, age: float, speed: float = 1.0) -> Stage:
    """The stage of containers that a kubelet started ``age`` seconds ago."""
    if script.failure in ("ImagePullBackOff", "Unschedulable"):
        return Stage(waiting="ImagePullBackOff")
    never_ready = script.failure is not None
    crash_after = script.crash_after
    if script.failure in ("CrashLoopBackOff", "OOMKilled") and crash_after is None:
        crash_after = _SHORT_RUN / speed
    if crash_after is None:
        if never_ready:
            return Stage()
        return Stage(ready=True) if age >= script.ready_after else Stage(until=script.ready_after)
    begun, restarts = 0.0, 0
    while True:
        crash = begun + crash_after
        if age < crash:
            ready_at = begun + script.ready_after
            if never_ready or ready_at >= crash:
                return Stage(restarts=restarts, until=crash)
            if age < ready_at:
                return Stage(restarts=restarts, until=ready_at)
            return Stage(ready=True, restarts=restarts, until=crash)
        back_off = _back_off(restarts, crash_after * speed)
        begun = crash + back_off / speed
        if age < begun:
            return Stage(restarts=restarts, waiting="CrashLoopBackOff", back_off=back_off, until=begun)
        restarts += 1


def _back_off(restarts: int, run: float) -> float:
    if restarts == 0 or run >= _GOOD_RUN:
        return 0.0
    return float(min(_FIRST_BACK_OFF * 2 ** min(restarts - 1, 10), _LONGEST_BACK_OFF))
