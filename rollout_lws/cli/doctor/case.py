"""Context of one diagnosis: the facts, what the controller's own rules decide about them, and shared phrases."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from rollout_lws.api import ConditionType, Phase, SummaryState
from rollout_lws.api.resources import batch_releases, rollouts
from rollout_lws.cli.doctor.complaint import PLACE, Complaint
from rollout_lws.cli.doctor.facts import Facts, PendingWrite
from rollout_lws.cli.doctor.links import Link, Name, State
from rollout_lws.cli.releases import target_of
from rollout_lws.objects.kueue import ORIGIN
from rollout_lws.objects.released import RELEASED
from rollout_lws.objects.resources import (
    CRON_JOBS,
    CUSTOM_RESOURCE_DEFINITIONS,
    HORIZONTAL_POD_AUTOSCALERS,
    JOBS,
    KUEUE_CHECKS,
    KUEUE_WORKLOADS,
    KUEUE_WORKLOADS_BEFORE,
    PODS,
    SERVICES,
    ObjectRef,
    Resource,
)
from rollout_lws.objects.writes import Confirm, Patch, Write
from rollout_lws.rollout.autoscaling import replicas
from rollout_lws.rollout.decide import decide_release
from rollout_lws.rollout.decision import Decision, FieldRef, Verdict
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.gates.records import planned
from rollout_lws.rollout.groups.watch_demand import names_checks, needs_workloads, was_dispatched
from rollout_lws.rollout.lifecycle import pair
from rollout_lws.rollout.preflight import cannot_manage, cannot_release, invalid_spec
from rollout_lws.rollout.reasons import Reason
from rollout_lws.rollout.routing import sides
from rollout_lws.rollout.routing.weights import settings, told
from rollout_lws.targets.target import Target
from rollout_lws.traffic.registry import WRITTEN_SPECS
from rollout_lws.traffic.split import ALL_STABLE
from rollout_lws.workload.draining import draining
from rollout_lws.workload.facts import Facts as Workload
from rollout_lws.workload.groups import groups
from rollout_lws.workload.queueing import dispatch

#: Links where the complaint may be about one of several objects.
_NAMING = (Name.WORKLOAD, Name.SERVICE, Name.ROUTE, Name.AUTOSCALER)
#: Kinds that a release writes, other than Rollout and BatchRelease.
_ACTED_ON = (*RELEASED, SERVICES, HORIZONTAL_POD_AUTOSCALERS, *(spec.resource for spec in WRITTEN_SPECS))
#: Kueue's Workloads, which show what Kueue waits for.
QUEUES = (KUEUE_WORKLOADS, KUEUE_WORKLOADS_BEFORE)


class Case:
    """Results are computed once; a case never writes."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.now = facts.now
        self.d = Draft.of(facts.observation)
        meta = facts.observation.rollout.metadata
        self.name, self.namespace = meta.name, meta.namespace
        #: The workload that serves: of a pair its active side.
        self.workload_name = self.d.name

    @property
    def target(self) -> type[Target]:
        """The struct of the kind that the Rollout releases."""
        return target_of(self.facts.rollout)

    # Results of the controller's rules

    @cached_property
    def unjudged(self) -> tuple[Resource, ...]:
        """Kinds that the controller's rules need and that may not be read; without them the rules would judge a state
        that does not exist.
        """
        return tuple(each for each in self.facts.refused if self._is_gone_by(each))

    def _is_gone_by(self, resource: Resource) -> bool:
        if resource == CUSTOM_RESOURCE_DEFINITIONS:
            return False
        if resource in QUEUES:
            return needs_workloads(self.d)
        if resource == KUEUE_CHECKS:
            return names_checks(self.d)
        if resource in (JOBS, CRON_JOBS):
            return self.is_on and any(gate.job is not None for gate in planned(self.d))
        return True

    @property
    def is_whole(self) -> bool:
        """Whether everything that the controller's rules need was read."""
        return not self.unjudged

    @cached_property
    def complaint(self) -> Complaint | None:
        """The rules' complaint, with or without a running controller; refusals come before failures."""
        found = self._refused() if self.is_whole else None
        if found is not None:
            return found
        # Only the controller that tried a write knows that the API server refused it.
        if self.is_whole and not self.d.said(Reason.WRITE_REFUSED):
            last = self._decision.verdict
            if last is None or last.condition != ConditionType.STALLED:
                return self.said_of_scripts
            return Complaint(last.reason, last.message, last.field, last.goes_on, last.verbs)
        return self._said()

    def _said(self) -> Complaint | None:
        """The controller's last complaint, from the status."""
        last, message = self.d.status.verdict, self.d.status.message or ""
        if last is None or last.condition != ConditionType.STALLED or last.reason not in PLACE:
            return None
        reason, at = Reason(last.reason), last.field
        field = FieldRef.of(at) if at is not None else None
        said = Verdict(last.condition, reason, SummaryState.STALLED, message, field, bool(last.goes_on))
        return Complaint(reason, message, field, said.goes_on, said.verbs)

    @cached_property
    def said_of_scripts(self) -> Complaint | None:
        """The same as far as only the controller can tell: which scripts it has, and what came of them."""
        facts, last = self.d.o.routing, self._said()
        if facts is None or last is None or not facts.names.custom:
            return None
        blind = facts.scripts.source is None or bool(self._decision.wanted.evaluations)
        return last if blind and last.reason in (Reason.INVALID_SPEC, Reason.ROUTE_PROBLEM) else None

    @cached_property
    def _decision(self) -> Decision:
        """What a controller would decide of the release at this moment."""
        return decide_release(self.facts.observation)

    def _refused(self) -> Complaint | None:
        """Preflight refusals, including those that would block a version that is not applied yet."""
        d = Draft.of(self.facts.observation)
        if self.is_leaving:
            return None
        found = cannot_manage(d)
        # Which side of a pair serves, and which one may go, is judged at adoption.
        unknown = d.o.undecided or (d.scales_sides and d.o.stable is not None and d.status.stable is None)
        asked = pair.adopt(d).verdict if found is None and d.paired and unknown else None
        if asked is not None and asked.condition == ConditionType.STALLED:
            return Complaint(asked.reason, asked.message, asked.field)
        if found is None and d.paired and d.o.undecided:
            return None
        if found is None:
            found = invalid_spec(d) if d.o.stable is None else cannot_release(d)
        if found is None:
            return None
        return Complaint(found.reason, found.message, found.field)

    @cached_property
    def pending_writes(self) -> frozenset[PendingWrite]:
        """Writes that a controller would make now; usually none, since it has made them."""
        if not self.is_whole:
            return frozenset()
        # Only the Rollout's controller writes its status, while other objects have other writers too.
        version = self.facts.observation.rollout.metadata.resource_version
        return frozenset(
            PendingWrite(_words(each), version, f"{each.resource.kind}/{each.name}")
            for each in (*self._decision.writes, *self._scaling)
            if self._is_proof(each)
        )

    @property
    def _scaling(self) -> tuple[Write, ...]:
        """The numbers of groups that a controller would write now, those of companions among them."""
        scaled = replicas.scale(self.d) if cannot_manage(self.d) is None else None
        own = tuple(each.write for each in scaled.best_effort) if scaled is not None else ()
        beside = {each.name for each in self.d.o.companions}
        return (*own, *(each.write for each in self._decision.best_effort if each.write.name in beside))

    @property
    def undone(self) -> frozenset[PendingWrite]:
        """Writes that are pending in both looks, so no controller makes them."""
        return self.pending_writes & (self.facts.pending_writes or frozenset())

    def _is_proof(self, write: Write) -> bool:
        """Whether a write that remains pending proves that no controller acts. A controller of another release words
        its status differently and uses other version hashes.
        """
        own = rollouts(self.d.keys.group), batch_releases(self.d.keys.group)
        if isinstance(write, Confirm) or write.resource not in (*_ACTED_ON, *own):
            return False
        if not isinstance(write, Patch):
            return True
        if write.subresource == "status":
            # Outside a release, a controller of any version records the workload generation it has observed.
            return not self.is_on and "observedWorkloadGeneration" in (write.body.get("status") or {})
        meta = write.body.get("metadata") or {}
        only_marks = set(write.body) == {"metadata"} and set(meta) == {"annotations"}
        return not (only_marks and set(meta["annotations"] or ()) == {self.d.keys.template_hash})

    @property
    def is_leaving(self) -> bool:
        """Whether the Rollout is disabled or being deleted."""
        rollout = self.d.o.rollout
        return rollout.spec.disabled or rollout.metadata.deletion_timestamp is not None

    @property
    def is_on(self) -> bool:
        """Whether a release is in progress."""
        return self.d.status.phase == Phase.PROGRESSING

    def runs_elsewhere(self, side: Workload) -> bool:
        """Whether MultiKueue has the groups of this workload scheduled and ready in another cluster; without the right
        to read Workloads, whether the controller has found that.
        """
        unread = any(each in self.facts.refused for each in QUEUES) and ORIGIN not in side.workload.metadata.labels
        return dispatch(side, self.d.o.queues.dispatching) is not None or (unread and was_dispatched(self.d))

    # Phrases

    def role(self, name: str) -> str:
        """Which of two workloads that change roles this one is, in words; "" of another Rollout, and while it is not
        known.
        """
        if self.d.swapped:
            users = self.d.other_name
            return f"the active side, in place of {users}" if name == self.d.name else "the inactive side"
        if not self.d.paired or self.facts.observation.undecided:
            return ""
        beside = next((each for each in self.d.o.companions if name in (each.name, each.other_name)), None)
        if beside is None:
            return "the active side" if name == self.d.name else "the inactive side"
        return "of the active side" if name == beside.name else "of the inactive side"

    def named(self, name: str) -> str:
        """A workload of the Rollout as links name it: ``LeaderWorkerSet/llama``."""
        return f"{self.target.resource.kind}/{name}"

    @property
    def kind(self) -> str:
        """The kind of its workloads, as commands name it: ``leaderworkerset``."""
        return self.target.resource.kind.lower()

    def kubectl(self, words: str) -> str:
        return f"kubectl {words}" + ("" if self.namespace == "default" else f" -n {self.namespace}")

    def itself(self, verb: str) -> str:
        """One of our own commands for this Rollout."""
        return self.d.command(verb)

    def unread(self, name: Name, about: str, *needed: Resource) -> Link | None:
        """The link with state unknown when one of these kinds may not be read, else None."""
        kind = next((each for each in needed if each in self.facts.refused), None)
        if kind is None:
            return None
        return Link(
            name,
            State.UNKNOWN,
            about,
            f"{kind} may not be read: {self.facts.refused[kind]}",
            by_itself="the links after it are looked at all the same",
            next=(self.kubectl(f"auth can-i list {kind}"),),
        )

    @property
    def share(self) -> str:
        """Of requests that go to the new version, as far as routers have accepted it."""
        record = self.d.status.traffic
        return record.applied.text if record is not None and record.applied is not None else told(ALL_STABLE)

    def affected(self, link: Link) -> str:
        """Which users a link that is not ok affects, by the groups that are ready and by where requests go."""
        serving = self._serving
        if link.state in (State.OK, State.UNKNOWN):
            return ""
        if link.name in (Name.SERVICE, Name.ENDPOINTS, Name.ROUTE):
            at_rest = self.d.paired and not self.is_on
            return "users whose requests take it" + ("" if at_rest else f": {self.share} of all go to the new version")
        if link.name is Name.GATES and self.d.said(Reason.GATE_FAILED):
            return f"users of the new version: {self.share} of all requests go to it"
        name = serving.name if serving is not None else self.workload_name
        if serving is None or PODS in self.facts.refused or self.runs_elsewhere(serving):
            return f"not known: groups of {name} cannot be seen here"
        shared = self._shares_groups
        asked = self.d.replicas if shared else serving.workload.replicas
        ready = min(asked, sum(self._ready(side) for side in (self.facts.sides if shared else (serving,))))
        name = "both sides" if shared else name
        routed = f"; {self.share} of requests go to the new version" if self.is_on and settings(self.d) else ""
        standing = f"{ready} of {asked} groups of {name} are ready{routed}"
        if not ready:
            return f"all users: {standing}"
        if ready < asked:
            return f"users, as far as the other groups cannot carry the load: {standing}"
        return f"no user yet: {standing}"

    @property
    def _shares_groups(self) -> bool:
        """Whether both workloads together carry the load, since a release takes groups of the one that serves."""
        d = self.d
        if not self.is_on or not d.scales_sides or d.o.stable is None:
            return False
        return d.capacity.shifts or d.stable.workload.replicas < d.own_size

    def _ready(self, side: Workload) -> int:
        """Groups of a workload that are ready and get requests."""
        stay = (each for each in groups(side) if 0 <= each.ordinal < side.workload.replicas)
        return sum(each.ready(self.now) and draining(each.leader, self.d.keys) is None for each in stay)

    @property
    def _serving(self) -> Workload | None:
        """The workload that requests go to outside a release: of a pair the inactive side, while only that serves."""
        both = self.facts.observation
        if self.d.paired and not self.is_on and both.canary is not None and not both.undecided and sides.shares(self.d):
            return both.canary
        return both.stable

    def not_done(self, name: Name, about: str, refs: Iterable[ObjectRef], steps: tuple[str, ...]) -> Link | None:
        """The link as broken, when no controller makes a pending write to one of the objects ``refs``."""
        places = {f"{each.kind}/{each.name}" for each in refs}
        undone = min((each for each in self.undone if each.about in places), default=None)
        if undone is None:
            return None
        text = f"does not say what the Rollout does: {undone.text} is pending"
        return Link(name, State.BROKEN, about, text, "the controller writes it as soon as it acts", steps)

    def complained(self, name: Name, about: str, steps: Iterable[str] = ()) -> Link | None:
        """The link as broken, when the rules' complaint belongs to it."""
        found = self.complaint
        if found is None or found.place is not name:
            return None
        at = found.field if name in _NAMING else None
        if at is not None and at.kind and f"{at.kind}/{at.name}" != about:
            about, steps = f"{at.kind}/{at.name}", (self.kubectl(f"get {at.kind.lower()} {at.name} -o yaml"),)
        goes_on = "it goes on by itself as soon as that is fixed"
        return Link(name, State.BROKEN, about, found.message, goes_on, (*steps,))


def _words(write: Write) -> str:
    what = f"{type(write).__name__.lower()} {write.resource.kind} {write.name}"
    subresource = "'s status" if isinstance(write, Patch) and write.subresource == "status" else ""
    return f"{what}{subresource}" + (f" ({write.reason})" if write.reason else "")
