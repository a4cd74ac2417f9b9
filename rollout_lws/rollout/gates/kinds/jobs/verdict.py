"""What a Job's end says of the version: only a container that ended with an error by itself is its fault.

What the cluster did to a Job is no verdict: no node, no image, no quota, an eviction, a lost node, a limit of time or
memory, a pod that was deleted. Such a Job is an Error, with its cause named.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from rollout_lws.api import GateResult
from rollout_lws.objects.jobs import Job
from rollout_lws.objects.meta import Condition
from rollout_lws.objects.workloads import ContainerStateTerminated, CoreEvent, Pod
from rollout_lws.rollout.gates.kinds.kind import Ended
from rollout_lws.workload.pod_words import disrupted, pod_trouble

#: Characters of a container's last words that are told.
WORDS_LIMIT = 256
#: A Job's end and its pods' come by different watches: for so long after the one the other is waited for.
SETTLED_SECONDS = 5
#: Reasons of containers that did not end by themselves, or never began.
_NOT_BY_ITSELF = frozenset({"OOMKilled", "ContainerCannotRun", "StartError", "ContainerStatusUnknown", "Unknown"})
_DEADLINE = "DeadlineExceeded"


@dataclass(frozen=True, slots=True)
class Unsettled:
    """The Job has failed, and why is not known yet; ``until`` is when that is waited for no longer."""

    until: datetime


def ending(job: Job, pods: Iterable[Pod], now: datetime) -> Ended | Unsettled | None:
    """What the Job's end says; None while it has not ended."""
    name = job.metadata.name
    if job.is_complete:
        return Ended(GateResult.PASSED, f"Job {name} is complete")
    failed = job.failed
    if failed is None:
        return None
    if failed.reason == _DEADLINE:
        return Ended(GateResult.ERROR, f"Job {name} was cut short by its own activeDeadlineSeconds")
    newest = sorted(pods, key=_age, reverse=True)
    own = next((told for pod in newest for told in _own_failures(pod)), None)
    if own is not None:
        return Ended(GateResult.FAILED, f"Job {name} failed: {own}")
    until = _settled(failed)
    if until is not None and now < until:
        return Unsettled(until)
    if not job.has_ended:
        # Its pods are still ending, and may say why.
        return None
    cause = next((told for pod in newest if (told := _cause(pod))), None)
    if cause is not None:
        return Ended(GateResult.ERROR, f"Job {name} failed, and not by itself: {cause}")
    why = f" ({failed.reason})" if failed.reason else ""
    return Ended(
        GateResult.ERROR,
        f"Job {name} failed{why}, and no pod is left to say why: pods stay with restartPolicy Never",
    )


def trouble(job: Job, pods: Iterable[Pod], refusals: Iterable[CoreEvent]) -> str:
    """What keeps a Job from its end, for a sentence that has named it; "" if nothing is known to."""
    if job.spec.suspend:
        return "it is suspended"
    known = sorted(pods, key=_age, reverse=True)
    worst = max(((pod_trouble(pod), pod) for pod in known), key=lambda each: each[0].severity, default=None)
    if worst is not None and worst[0].severity > 1:
        return f"pod {worst[1].metadata.name} {last_words(worst[0].detail)}"
    refused = max(refusals, key=lambda each: each.moment, default=None)
    if refused is not None and not known:
        return f"it gets no pod: {last_words(refused.message)}"
    return ""


def last_words(text: str) -> str:
    """The end of a text, in one line of printable characters."""
    clean = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return clean if len(clean) <= WORDS_LIMIT else f"…{clean[1 - WORDS_LIMIT :]}"


def _age(pod: Pod) -> tuple[float, str]:
    made = pod.metadata.creation_timestamp
    return made.timestamp() if made is not None else 0.0, pod.metadata.name


def _own_failures(pod: Pod) -> Iterator[str]:
    """Containers of the pod that ended with an error by themselves, each with its last words."""
    if disrupted(pod) or pod.status.reason:
        # Evicted, preempted, turned away by its node, cut short by its deadline.
        return
    if _cause(pod):
        # Of a container that was killed; others of the pod, sidecars among them, end with it.
        return
    for container in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        # A container that ends with its deleted pod has not failed; what it did before counts.
        ends = container.last_state.terminated if pod.metadata.terminating else container.state.terminated
        for ended in (ends, container.last_state.terminated):
            if ended is not None and ended.exit_code != 0 and ended.reason not in _NOT_BY_ITSELF:
                yield f"pod {pod.metadata.name}, container {container.name} ended with {_ending(ended)}"


def _ending(ended: ContainerStateTerminated) -> str:
    words = last_words(ended.message)
    return f"exit code {ended.exit_code}" + (f": {words}" if words else "")


def _cause(pod: Pod) -> str:
    """What ended a pod that did not end by itself, "" if it does not say."""
    name, status = pod.metadata.name, pod.status
    if status.reason or status.message:
        return f"pod {name}: {_joined(status.reason, status.message)}"
    for each in status.conditions:
        if each.type == "DisruptionTarget" and each.status == "True":
            return f"pod {name} was disrupted: {_joined(each.reason, each.message)}"
    for container in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        for ended in (container.state.terminated, container.last_state.terminated):
            if ended is not None and ended.reason in _NOT_BY_ITSELF:
                return f"pod {name}, container {container.name}: {_joined(ended.reason, ended.message)}"
    return ""


def _joined(reason: str, message: str) -> str:
    return ": ".join(filter(None, (reason, last_words(message))))


def _settled(failed: Condition) -> datetime | None:
    since = failed.last_transition_time
    return since + timedelta(seconds=SETTLED_SECONDS) if since is not None else None
