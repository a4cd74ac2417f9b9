"""The first links and the last: the Rollout itself, its controller, and the release as a whole."""

from __future__ import annotations

from dataclasses import replace

from rollout_lws.api import ActionType, Phase, SummaryState
from rollout_lws.api.resources import rollouts
from rollout_lws.cli.doctor.case import Case
from rollout_lws.cli.doctor.complaint import Complaint
from rollout_lws.cli.doctor.links import Link, Name, State, ok
from rollout_lws.rollout.reasons import Reason

#: Seconds within which a running controller acts on a change.
PATIENCE = 10.0
#: Requests that a controller keeps pending until the step's groups are ready.
_KEPT = (ActionType.PROMOTE_FULL, ActionType.JUMP)
_FIND_CONTROLLER = "kubectl get pods -A -l app.kubernetes.io/name=rollout-lws"


def rollout(case: Case) -> Link:
    """Whether the Rollout can be reconciled at all."""
    about = f"Rollout/{case.name}"
    describe = case.kubectl(f"describe {rollouts(case.d.keys.group)} {case.name}")
    steps: tuple[str, ...] = (describe,)
    if case.complaint is not None and case.complaint.reason is Reason.STANDS_IN:
        leave = case.kubectl(f"annotate {rollouts(case.d.keys.group)} {case.name} {case.d.keys.leave_as_is}=true")
        steps = (case.itself("home"), leave)
    found = case.complained(Name.ROLLOUT, about, steps)
    if found is not None:
        return found
    spec, d = case.d.o.rollout.spec, case.d
    if d.o.rollout.metadata.deletion_timestamp is not None:
        text = "is being deleted: it restores what it has changed first"
        return Link(Name.ROLLOUT, State.WAITING, about, text, "it goes when that is done", (describe,))
    if spec.disabled:
        on = case.kubectl(
            f'patch {rollouts(d.keys.group)} {case.name} --type=merge -p \'{{"spec":{{"disabled":false}}}}\''
        )
        text = "is disabled by spec.disabled"
        return Link(Name.ROLLOUT, State.WAITING, about, text, "nothing, until it is enabled", (on,))
    if case.d.paused:
        text = "is paused" + (" by spec.strategy.paused" if spec.strategy.paused else " by request")
        way_on = (describe,) if spec.strategy.paused else (case.itself("resume"),)
        by_itself = "nothing goes forward; what protects requests is still done"
        return Link(Name.ROLLOUT, State.WAITING, about, text, by_itself, way_on)
    refused = case.unread(Name.ROLLOUT, about, rollouts(d.keys.group))
    if refused is not None:
        return refused
    ref, other = spec.workload_ref.name, spec.counterpart_ref
    if other is not None:
        beside = " and ".join(f"{each.name} and {each.counterpart}" for each in spec.companions)
        beside = f" with companions {beside}" if beside else ""
        text = f"for the pair of {case.target.resource.kind}s {ref} and {other.name}{beside}, the only one for them"
        return ok(Name.ROLLOUT, about, text)
    instead = f"; {case.workload_name} serves in its place" if d.swapped else ""
    return ok(Name.ROLLOUT, about, f"for {case.target.resource.kind} {ref}, the only one for it{instead}")


def controller(case: Case) -> Link:
    """Whether a controller reconciles the Rollout."""
    about = f"Rollout/{case.name}"
    found = case.complained(
        Name.CONTROLLER, about, (case.kubectl(f"get events --field-selector involvedObject.name={case.name}"),)
    )
    if found is not None:
        return found
    generation, seen = case.d.o.rollout.metadata.generation, case.d.status.observed_generation or 0
    patient = case.facts.is_fresh(case.facts.rollout, PATIENCE)
    if seen < generation:
        what = "no controller has seen this Rollout" if not seen else f"its generation {generation} has not been seen"
        return _absent(case, about, f"{what} (last seen: {seen})" if seen else what, waits=patient)
    unanswered = _unanswered(case)
    if unanswered:
        return _absent(case, about, *unanswered)
    unread = case.unread(Name.CONTROLLER, about, *case.unjudged)
    if unread is not None:
        return unread
    if case.undone:
        return _absent(case, about, f"no controller makes the pending write, {min(case.undone).text}", waits=False)
    if case.pending_writes:
        text = f"a controller has this to do now: {min(case.pending_writes).text}"
        return _absent(case, about, text, waits=True)
    return ok(Name.CONTROLLER, about, f"has seen generation {generation} and has nothing left to do now")


def _unanswered(case: Case) -> tuple[str, bool] | None:
    """A user's request that no controller has answered, and whether an answer may still come."""
    asked = case.d.status.requested_action
    if asked is None or asked.type in _KEPT:
        return None
    who = asked.by or "a user"
    # A request without a time gets the interval between two looks.
    waits = case.facts.pending_writes is None if asked.at is None else (case.now - asked.at).total_seconds() < PATIENCE
    return f"{asked.type} by {who} has not been answered", waits


def _absent(case: Case, about: str, what: str, waits: bool) -> Link:
    if waits:
        return Link(Name.CONTROLLER, State.WAITING, about, what, by_itself="it mostly takes less than a second")
    return Link(
        Name.CONTROLLER,
        State.BROKEN,
        about,
        f"{what}: is a controller running, and does it look after namespace {case.namespace}?",
        "everything goes on from where it stands as soon as a controller runs",
        (_FIND_CONTROLLER, case.kubectl(f"get events --field-selector involvedObject.name={case.name}")),
    )


def release(case: Case) -> Link:
    """Whether the release progresses: problems that no single object explains."""
    about, status = f"Rollout/{case.name}", case.d.status
    found, complaint = case.complained(Name.RELEASE, about), case.complaint
    if found is not None and complaint is not None:
        # Nothing puts a template back into a workload of a pair.
        verbs = [verb for verb in complaint.verbs if verb != "undo" or not case.d.paired]
        steps = tuple(case.itself(verb) for verb in verbs)
        return replace(found, by_itself=_by_itself(complaint, gone=status.phase == Phase.ABORTED), next=steps)
    summary = status.summary
    if summary is not None and summary.state == SummaryState.AWAITING_APPROVAL:
        steps = tuple(case.itself(verb) for verb in Reason.AWAITING_APPROVAL.verbs)
        text = f"step {summary.step or '?'} waits for approval"
        return Link(Name.RELEASE, State.WAITING, about, text, "nothing, until it is approved", steps)
    if status.phase != Phase.HEALTHY:
        text = status.message or f"is {status.phase or 'not adopted yet'}"
        stays = complaint is not None and complaint.reason is Reason.STANDS_IN
        by_itself = "nothing, until a person has chosen" if stays else "it goes on by itself"
        return Link(Name.RELEASE, State.WAITING, about, text, by_itself)
    if case.d.paired:
        return _of_pair(case, about)
    if status.stable is not None and status.observed_template_hash not in (None, status.stable.template_hash):
        text = f"none is on: the {case.target.resource.kind}'s new version waits; the links above say why"
        return Link(Name.RELEASE, State.WAITING, about, text, "it is released as soon as that is fixed")
    return ok(Name.RELEASE, about, f"none is on; the version that the {case.target.resource.kind} asks for is stable")


def _of_pair(case: Case, about: str) -> Link:
    other = case.facts.observation.canary
    if case.d.own_pending and case.d.scales_sides:
        text = f"none is on: the version in the template of {case.d.called} waits"
        by_itself = "it is released when it is applied to the other side; the links above say why"
        return Link(Name.RELEASE, State.WAITING, about, text, by_itself)
    last = case.d.status.verdict
    if last is not None and last.reason == Reason.VERSION_INCOMPLETE:
        by_itself = "nothing, until the other workloads of its side have the version too"
        steps = tuple(case.itself(verb) for verb in Reason.VERSION_INCOMPLETE.verbs)
        return Link(Name.RELEASE, State.WAITING, about, case.d.status.message or "", by_itself, steps)
    if case.d.status.arriving is not None:
        return Link(Name.RELEASE, State.WAITING, about, case.d.status.message or "", "it goes on by itself")
    if case.d.pending and other is not None:
        text = f"none is on: the new version of {other.called} waits; the links above say why"
        return Link(Name.RELEASE, State.WAITING, about, text, "it is released as soon as that is fixed")
    whose = "" if case.facts.observation.undecided else f"; {case.d.called} is the active side"
    return ok(Name.RELEASE, about, f"none is on{whose}")


def _by_itself(complaint: Complaint, *, gone: bool) -> str:
    if gone:
        return "nothing: the stable version serves on"
    return "it goes on, as the cause says" if complaint.goes_on else "nothing but what the cause says"
