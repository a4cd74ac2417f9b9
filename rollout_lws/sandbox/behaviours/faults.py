"""Pod behaviour set by annotations on the pod template, so that a "bad version" is just another template."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias, get_args

from rollout_lws.errors import UsageError
from rollout_lws.objects.codec import durations
from rollout_lws.objects.resources import LWS_WORKER_INDEX
from rollout_lws.sandbox.behaviours.base import Object, annotations_of, labels_of

PREFIX = "sandbox.rollouts.kruise.io/"
#: On a pod itself: the node that it runs on is lost, until the annotation is taken away.
CUT_OFF = "cut-off"

Failure: TypeAlias = Literal[
    "ImagePullBackOff", "CrashLoopBackOff", "OOMKilled", "NeverReady", "Unschedulable", "FailedCreate", "Evicted"
]
_FAILURES: tuple[Failure, ...] = get_args(Failure)


@dataclass(frozen=True, slots=True)
class Timing:
    """What pods do without annotations, in seconds; ``speed`` 10 makes everything take a tenth of its time.

    A leader starts up ``leader_longer`` longer than workers, like a server that waits for its workers to join.
    """

    ready_after: float = 1.0
    terminate_after: float = 0.2
    leader_longer: float = 0.0
    speed: float = 1.0


@dataclass(frozen=True, slots=True)
class Script:
    """The life of one pod in seconds of the sandbox's clock; ``problem`` is the error in an annotation."""

    ready_after: float
    terminate_after: float
    failure: Failure | None = None
    crash_after: float | None = None
    problem: str = ""
    cut_off: bool = False
    """Its node is lost, and with it its kubelet."""
    ends_after: float | None = None
    """Seconds until its containers end by themselves, where an annotation says so."""
    exit_code: int = 0
    """How they end then."""


def script_of(pod: Object, timing: Timing) -> Script:
    """The pod's annotations as a Script; a pod with an invalid annotation never becomes ready and reports the error."""
    annotations = annotations_of(pod)

    def duration(name: str, default: float) -> float:
        text = annotations.get(PREFIX + name)
        try:
            return (default if text is None else durations.parse(text)) / timing.speed
        except ValueError as error:
            raise UsageError(f"annotation {PREFIX}{name}: {error}") from None

    try:
        longer = timing.leader_longer if labels_of(pod).get(LWS_WORKER_INDEX) == "0" else 0.0
        ready_after = duration("ready-after", timing.ready_after + longer)
        terminate_after = duration("terminate-after", timing.terminate_after)
        crash_after = duration("crash-after", 0.0) if PREFIX + "crash-after" in annotations else None
        ends_after = duration("ends-after", 0.0) if PREFIX + "ends-after" in annotations else None
        exit_code = _exit_code(annotations.get(PREFIX + "exit-code", "0"))
        if crash_after == 0:
            raise UsageError(f"annotation {PREFIX}crash-after must be more than 0 s")
        failure = _failure(pod)
        if not _meant(pod):
            failure, crash_after = None, None
    except UsageError as error:
        return Script(timing.ready_after, timing.terminate_after / timing.speed, "NeverReady", problem=str(error))
    cut_off = annotations.get(PREFIX + CUT_OFF) == "true"
    return Script(
        ready_after,
        terminate_after,
        failure or _bad_image(pod),
        crash_after,
        cut_off=cut_off,
        ends_after=ends_after,
        exit_code=exit_code,
    )


def _exit_code(text: str) -> int:
    if not text.isdecimal() or int(text) > 255:
        raise UsageError(f'annotation {PREFIX}exit-code: "{text}" is no number from 0 to 255')
    return int(text)


def _failure(pod: Object) -> Failure | None:
    text = annotations_of(pod).get(PREFIX + "fail")
    if text is None:
        return None
    for known in _FAILURES:
        if text == known:
            return known
    raise UsageError(f'annotation {PREFIX}fail: "{text}" is not one of {", ".join(_FAILURES)}')


def refused_at_creation(pod: Object) -> bool:
    """Whether the API server refuses to create this pod, as a ResourceQuota would."""
    return annotations_of(pod).get(PREFIX + "fail") == "FailedCreate" and _meant(pod)


def _meant(pod: Object) -> bool:
    """Whether ``fail-on`` (leader, worker or a glob of the pod's name) covers this pod; without it all are covered."""
    where = annotations_of(pod).get(PREFIX + "fail-on")
    if where in ("leader", "worker"):
        return (labels_of(pod).get(LWS_WORKER_INDEX) == "0") == (where == "leader")
    return where is None or fnmatchcase(pod["metadata"]["name"], where)


def _bad_image(pod: Object) -> Failure | None:
    images = (str(container.get("image", "")) for container in pod["spec"]["containers"])
    tags = (image.rpartition("/")[2].partition(":")[2] for image in images)
    return "NeverReady" if any(tag.startswith("bad") for tag in tags) else None
