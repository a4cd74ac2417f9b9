"""What a release that takes groups of the workload that serves leaves behind where no controller finishes it: pods
without a label by which requests find them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rollout_lws.cli.doctor.case import Case
from rollout_lws.cli.doctor.links import Link, Name, State
from rollout_lws.objects.workloads import Pod
from rollout_lws.workload.draining import Draining, draining, lost_labels
from rollout_lws.workload.facts import Facts as Workload
from rollout_lws.workload.groups import groups

#: Pods whose commands are printed.
_SHOWN = 3


def links(case: Case) -> Iterator[Link]:
    """Of each workload the pods that get no requests, though no release takes groups."""
    if case.d.shifts:
        # They are about to go, or get their label back.
        return
    for side in case.facts.sides:
        known, unknown = list[tuple[Pod, Draining]](), list[Pod]()
        for pod in _marked(case, side):
            record = draining(pod, case.d.keys)
            if record is not None and len(_lost(case, record)) == len(record.labels):
                known.append((pod, record))
            else:
                unknown.append(pod)
        if known:
            yield _out(case, known)
        if unknown:
            yield _unread(case, unknown)


def is_emptied(case: Case, side: Workload) -> bool:
    """Whether a release has taken the requests of all groups of a workload, before it scales it down."""
    found = groups(side)
    return case.d.shifts and bool(found) and all(draining(each.leader, case.d.keys) is not None for each in found)


def _marked(case: Case, side: Workload) -> list[Pod]:
    """Pods with our annotation of groups that stay."""
    every = {pod.metadata.name: pod for pod in (*side.leaders, *side.pods) if not pod.metadata.terminating}
    marked = (pod for _, pod in sorted(every.items()) if case.d.keys.draining in pod.metadata.annotations)
    end = side.workload.first_ordinal + side.workload.replicas
    return [pod for pod in marked if not pod.group_index.isdigit() or int(pod.group_index) < end]


def _lost(case: Case, record: Draining) -> dict[str, str]:
    """The labels of the record that a release can have removed, and that can be part of a command."""
    found = lost_labels(record, case.d.labels.prefixes)
    return {key: value for key, value in found.items() if not key.startswith("-")}


def _out(case: Case, found: Sequence[tuple[Pod, Draining]]) -> Link:
    pod, record = found[0]
    steps = list[str]()
    for each, said in found[:_SHOWN]:
        labels = " ".join(f"{key}={value}" for key, value in sorted(said.labels.items()))
        name = each.metadata.name
        steps += [case.kubectl(f"label pod {name} --overwrite {labels}")] if labels else []
        steps.append(case.kubectl(f"annotate pod {name} {case.d.keys.draining}-"))
    lost = ", ".join(sorted(record.labels)) or "(none)"
    text = (
        f"pod {pod.metadata.name} gets no requests since {record.since:%H:%M:%S} UTC: a release has removed its label"
        f" {lost}, and none takes groups now{_more(found)}"
    )
    return _link(case, pod, text, "the controller gives it back as soon as it acts", tuple(steps))


def _unread(case: Case, found: Sequence[Pod]) -> Link:
    pod, key = found[0], case.d.keys.draining
    name = pod.metadata.name
    text = (
        f"pod {name} may get no requests: its annotation {key} is to say which labels a release has removed, and"
        f" cannot be read{_more(found)}"
    )
    steps = (
        case.kubectl(f"get pod {name} --show-labels") + "   # give it the labels of the template that it lacks",
        case.kubectl(f"annotate pod {name} {key}-"),
    )
    return _link(case, pod, text, "nothing", steps)


def _more(found: Sequence[object]) -> str:
    return f" (and {len(found) - 1} more)" if len(found) > 1 else ""


def _link(case: Case, pod: Pod, text: str, by_itself: str, steps: tuple[str, ...]) -> Link:
    about, before = f"Pod/{pod.metadata.name}", case.facts.before
    # Seen once only, it is what a controller puts right now.
    lasts = before is None or (Name.READINESS, about) in before.amiss
    return Link(Name.READINESS, State.BROKEN if lasts else State.WAITING, about, text, by_itself, steps)
