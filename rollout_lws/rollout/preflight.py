"""Preflight checks: LWSs that a Rollout cannot manage, and versions that it cannot release now.

Each check returns None or a refusal whose message says what to do. "Cannot manage" leaves everything untouched; "cannot
release now" keeps the hold, so that the version waits until the obstacle is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rollout_lws.api import BlueGreenStatus, CanaryStatus, Phase
from rollout_lws.api.problem import Problem
from rollout_lws.api.validation import problems
from rollout_lws.capacity import known
from rollout_lws.capacity.table import strategy_of_plan
from rollout_lws.objects.meta import Meta
from rollout_lws.rollout.autoscaling.autoscalers import cannot_hold, scales_a_side
from rollout_lws.rollout.decision import FieldRef, Refusal
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.groups.multikueue import copied_from_another_cluster, dispatched_to_another_cluster
from rollout_lws.rollout.groups.shifting import margin
from rollout_lws.rollout.history import stable_version
from rollout_lws.rollout.reasons import Reason
from rollout_lws.rollout.routing.routing_preflight import cannot_route, obstacles
from rollout_lws.rollout.routing.unmanaged_backends import of_one_workload
from rollout_lws.targets.owner import PAGE, cannot_be_written, disaggregated_set, instead_of
from rollout_lws.targets.table import TARGETS, target_type
from rollout_lws.targets.version import Version
from rollout_lws.traffic.custom.scripts import FLAG
from rollout_lws.workload.applied import server_side_owner, stated_replicas
from rollout_lws.workload.canary import canary_name
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.queueing import queue_of

#: Longest label value.
NAME_LIMIT = 63


def wrong_kind(d: Draft) -> Refusal | None:
    ref = d.o.rollout.spec.workload_ref
    if target_type(ref.api_version, ref.kind) is not None:
        return None
    known = " or ".join(f"{each.resource.api_version} {each.resource.kind}" for each in TARGETS)
    way_out = instead_of(ref.api_version, ref.kind) or "correct apiVersion and kind"
    return Refusal(
        Reason.WRONG_WORKLOAD_KIND,
        f"spec.workloadRef names {ref.api_version} {ref.kind}; only {known} can be released: {way_out}",
        FieldRef("spec.workloadRef"),
    )


def long_name(d: Draft) -> Refusal | None:
    """The Rollout's name is a label value on the versions in its history."""
    name = d.o.rollout.metadata.name
    if len(name) <= NAME_LIMIT:
        return None
    return Refusal(
        Reason.NAME_TOO_LONG,
        f"the Rollout's name has {len(name)} characters: make it anew with a name of at most {NAME_LIMIT}",
        FieldRef("metadata.name"),
    )


def older_rival(d: Draft) -> Meta | None:
    """The Rollout that manages the LWS instead: the older one; of two created in the same second, the smaller UID."""
    mine = d.o.rollout.metadata
    for meta in d.o.rivals:
        if (meta.creation_timestamp, meta.uid) < (mine.creation_timestamp, mine.uid):
            return meta
    return None


def second_rollout(d: Draft) -> Refusal | None:
    older = older_rival(d)
    if older is None:
        return None
    whose = f"{d.name} or {d.other_name}" if d.paired else d.called
    whose = f"{d.name}, {d.other_name} or a companion of theirs" if d.o.companions else whose
    return Refusal(
        Reason.SECOND_ROLLOUT,
        f"{whose} is already released by Rollout {older.name}, which is older: delete one of the two",
        FieldRef("spec.workloadRef.name"),
    )


def owned(d: Draft) -> Refusal | None:
    for each in _written(d):
        message = cannot_be_written(each.workload, paired=d.paired)
        if message:
            return Refusal(Reason.WORKLOAD_OWNED, message, FieldRef("metadata.ownerReferences", d.kind, each.name))
    return None


def one_disaggregated_set(d: Draft) -> Refusal | None:
    """Refuses a pair whose sides are made by one DisaggregatedSet: it takes the groups of one as those of the other one
    come, or they are two of its roles.
    """
    if not d.paired or d.o.stable is None or d.o.canary is None:
        return None
    one, other = (disaggregated_set(each.workload) for each in (d.o.stable, d.o.canary))
    if one is None or other is None or one.uid != other.uid:
        return None
    return Refusal(
        Reason.WORKLOAD_OWNED,
        f"{d.called} and {d.other_name} are both made by DisaggregatedSet {one.name}, which makes and takes the groups"
        f" of its versions by itself: give each side a DisaggregatedSet of its own; {PAGE} says how",
        FieldRef("metadata.ownerReferences", d.kind, d.other_name),
    )


def stands_in(d: Draft) -> Refusal | None:
    """Refuses a workload that another Rollout's release has made, and that serves in place of the user's."""
    for each in _written(d):
        users = each.workload.metadata.labels.get(d.keys.stands_for)
        if users and users != each.name and not (d.swapped and each is d.o.stable):
            return Refusal(
                Reason.WORKLOAD_OWNED,
                f"{each.called} serves in place of {users}, for whose Rollout it was made: name {users} instead, or"
                f" remove the label {d.keys.stands_for}",
                FieldRef("metadata.labels", d.kind, each.name),
            )
    return None


def _written(d: Draft) -> tuple[Facts, ...]:
    """The LWSs of users that a release writes."""
    if d.paired and not d.scales_sides:
        return ()
    if d.beside_users:
        return d.o.workloads
    return (d.o.stable,) if d.o.stable is not None else ()


def unfit(d: Draft) -> Refusal | None:
    # A pair releases requests alone; which groups of a side go when it gives some up has to be known.
    spec = d.o.rollout.spec
    shifts = spec.strategy.style is not None and spec.strategy.style.shifting is not None
    by_requests = d.paired and not spec.companions and not shifts
    for each in _written(d):
        found = each.workload.obstacle
        if found is not None and not (by_requests and not each.workload.can_be_held):
            message = f"{each.called} {found.message}"
            return Refusal(Reason(found.reason), message, FieldRef(found.field, d.kind, each.name))
    return None


def too_old(d: Draft) -> Refusal | None:
    ref = d.o.rollout.spec.workload_ref
    kind = target_type(ref.api_version, ref.kind)
    if d.o.capabilities.observed_generation or kind is None or not kind.too_old:
        return None
    return Refusal(Reason.LWS_TOO_OLD, kind.too_old)


_MANAGE: tuple[Callable[[Draft], Refusal | None], ...] = (
    wrong_kind,
    long_name,
    second_rollout,
    owned,
    one_disaggregated_set,
    stands_in,
    copied_from_another_cluster,
    dispatched_to_another_cluster,
    unfit,
    too_old,
)


def cannot_manage(d: Draft) -> Refusal | None:
    return next((refusal for check in _MANAGE if (refusal := check(d))), None)


def invalid_spec(d: Draft) -> Refusal | None:
    """Validates the Rollout alone, at its own generation, for this controller."""
    found = (*problems(d.o.rollout.spec), *scripts_off(d))
    if not found:
        return None
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return Refusal(Reason.INVALID_SPEC, f"{found[0].path}: {found[0].message}{more}")


def scripts_off(d: Draft) -> Iterator[Problem]:
    """Objects of custom kinds, where the controller runs no scripts."""
    strategy, facts = d.o.rollout.spec.strategy, d.o.routing
    routings = strategy.style.traffic_routings if strategy.style is not None else ()
    if facts is not None and facts.scripts.source == "" and any(each.custom_network_refs for each in routings):
        yield Problem(
            f"spec.strategy.{'canary' if strategy.canary is not None else 'blueGreen'}.trafficRoutings[0]"
            ".customNetworkRefs",
            f"this controller runs no scripts: start it with {FLAG}, or name a route in gateway, istio or ingress",
        )


def _other_stable(d: Draft) -> Version | None:
    """The stable version; None if it is unknown, or the pending one is the same."""
    return None if d.asks_for_stable else stable_version(d)


def claims_changed(d: Draft) -> Refusal | None:
    stable = _other_stable(d)
    if stable is None or stable.claim_templates == d.version.claim_templates:
        return None
    return Refusal(
        Reason.CLAIMS_CHANGED,
        f"the pending version of {d.called} changes volumeClaimTemplates, which a StatefulSet cannot change: restore"
        f" them, or make a new {d.kind}",
    )


def unsafe_pending(d: Draft) -> Refusal | None:
    """Refuses members that the workload's controller would apply to restarted groups of the held version as well."""
    stable = None if d.o.capabilities.group_identity else _other_stable(d)
    if stable is None:
        return None
    before, after = d.stable.workload.unheld(stable), d.stable.workload.unheld(d.version)
    changed = next((name for name in after if before[name] != after[name]), None)
    if changed is None:
        return None
    return Refusal(
        Reason.UNSAFE_PENDING,
        f"the pending version of {d.called} changes its {changed}; up to LWS 0.10 any group of the held version that"
        f" restarts would be damaged: restore the {changed}, or upgrade {d.kind}",
    )


def name_taken(d: Draft) -> Refusal | None:
    name = canary_name(d.stable.workload)
    if d.capacity.one_workload or d.o.canary is not None or not any(each.kind == d.kind for each in d.o.remains):
        return None
    return Refusal(
        Reason.NAME_TAKEN,
        f"{d.kind} {name} exists and is not ours, but the canary needs its name: delete it, or make it anew"
        " under another name",
        FieldRef("metadata.name", d.kind, name),
    )


def other_style(d: Draft) -> Refusal | None:
    """Refuses a style or capacity other than the one in which the release records its groups and its step."""
    known, spec = d.status.sub, d.o.rollout.spec.strategy
    wanted = BlueGreenStatus if spec.blue_green is not None else CanaryStatus
    if d.status.phase != Phase.PROGRESSING or known is None:
        return None
    if isinstance(known, wanted) or d.swapped:
        # The way back from a swap is the same with any plan.
        return None if d.swapped else _other_capacity(d)
    begun = "canary" if isinstance(known, CanaryStatus) else "blueGreen"
    return Refusal(
        Reason.INVALID_SPEC,
        f"the style of a release that is on cannot change: restore spec.strategy.{begun} until it is over, or go back",
    )


def _other_capacity(d: Draft) -> Refusal | None:
    if strategy_of_plan(d.strategy).name == d.capacity.name:
        return None
    return Refusal(
        Reason.INVALID_SPEC,
        "the capacity of a release that is on cannot change: restore spec.strategy.canary.capacity"
        f" {d.capacity.name} until it is over, or go back",
    )


def too_few_groups(d: Draft) -> Refusal | None:
    """In place, promotion updates the last group too, and another group has to serve meanwhile."""
    if not 0 < d.replicas < d.capacity.least_replicas:
        return None
    no_surge = queue_of(d.stable.workload) or not d.stable.workload.surges
    other = known.EXTRA_WORKLOAD if no_surge else known.SURGE
    return Refusal(
        Reason.TOO_FEW_GROUPS,
        f"{d.stable.called} has 1 group, and {d.capacity.title} renews groups while others"
        f" serve: scale it to {d.capacity.least_replicas}, or use capacity {other.name}",
        FieldRef("spec.strategy.canary.capacity"),
    )


def no_place(d: Draft) -> Refusal | None:
    """Refuses to shift a single group without room for another one: it would go before the other one comes."""
    if not d.capacity.shifts or d.replicas != 1 or margin(d).extra:
        return None
    return Refusal(
        Reason.TOO_FEW_GROUPS,
        f"{d.stable.called} has 1 group, and with shift.maxExtraGroups 0 it would go before another one serves: set"
        " maxExtraGroups to 1, or scale the Rollout to 2",
        FieldRef("spec.strategy.canary.shift"),
    )


def without_surge(d: Draft) -> Refusal | None:
    """Refuses surge groups of a kind that has none: its API server would drop maxSurge from each write."""
    if not d.capacity.surges or d.stable.workload.surges:
        return None
    return Refusal(
        Reason.INVALID_SPEC,
        f"a {d.kind} has no surge groups: use capacity InPlace or ExtraWorkload",
        FieldRef("spec.strategy.canary.capacity"),
    )


def surge_under_kueue(d: Draft) -> Refusal | None:
    """Kueue deletes the Workloads of surge groups, which ends them, once LWS counts as many new groups as replicas."""
    queue = "" if d.capacity.fits_kueue else queue_of(d.stable.workload)
    if not queue:
        return None
    return Refusal(
        Reason.SURGE_UNDER_KUEUE,
        f"{d.stable.called} is queued by Kueue ({queue}), which ends surge groups as soon as"
        " there are as many new groups as the LWS has, while they serve: use capacity InPlace or ExtraWorkload",
        FieldRef("spec.strategy.canary.capacity"),
    )


_SPEC: tuple[Callable[[Draft], Refusal | None], ...] = (
    invalid_spec,
    other_style,
    too_few_groups,
    without_surge,
    surge_under_kueue,
    claims_changed,
    unsafe_pending,
)


def cannot_release(d: Draft) -> Refusal | None:
    if d.beside_users:
        # The inactive side's version is in effect there, so that nothing of it can be in the way.
        refusal = invalid_spec(d) or other_style(d) or no_place(d) or cannot_route(d) or cannot_scale(d)
        return refusal or next(left_behind(d), None)
    return refused_by_spec(d) or name_taken(d) or cannot_route(d) or next(left_behind(d), None) or _cannot_count(d)


def left_behind(d: Draft) -> Iterator[Refusal]:
    """Refuses to have another LWS serve in place of one that Services or budgets select by its name. In a release those
    that appear are the user's to answer for.
    """
    if not d.capacity.swaps or d.paired or d.status.phase == Phase.PROGRESSING:
        return
    for resource, name in of_one_workload(d, d.name):
        yield Refusal(
            Reason.LEFT_BEHIND,
            f"{resource.kind} {name} selects groups of {d.name} only, by labels that the {d.kind} gives them, and"
            f" {d.name} and {d.other_name} serve in turn: select them by labels of the template, such as app",
            FieldRef("spec.selector", resource.kind, name),
        )


def _cannot_count(d: Draft) -> Refusal | None:
    """Refuses autoscalers and manifests that would undo what a release does with numbers of groups."""
    return cannot_scale(d) if d.scales_sides else cannot_hold(d)


def applies_replicas(d: Draft) -> Refusal | None:
    """Refuses workloads that change roles and are scaled by those who apply their manifests: groups without requests
    would start, or those that serve would go.
    """
    for each in _written(d):
        meta = each.workload.metadata
        if stated_replicas(meta.annotations) is not None:
            place = "" if meta.namespace == "default" else f" -n {meta.namespace}"
            way_out = (
                f"remove spec.replicas with kubectl apply edit-last-applied {d.kind.lower()} {meta.name}{place}, and"
                " then from the manifest, in this order"
            )
            by = "kubectl apply"
        elif manager := server_side_owner(each.workload):
            by = manager
            way_out = "give the field another owner, and then remove it from the manifest: docs/pairs.md says how"
        else:
            continue
        return Refusal(
            Reason.REPLICAS_APPLIED,
            f"{each.called} gets spec.replicas from a manifest ({by}), which would undo what a release scales:"
            f" {way_out}",
            FieldRef("spec.replicas", d.kind, each.name),
        )
    return None


def cannot_scale(d: Draft) -> Refusal | None:
    """Refuses to scale workloads that change roles where others do."""
    if not d.scales_sides:
        return None
    # What is applied while a release is on is put back, and does not keep it.
    return scales_a_side(d) or (None if d.status.phase == Phase.PROGRESSING else applies_replicas(d))


def refused_by_spec(d: Draft) -> Refusal | None:
    """Checks of the two specs alone; their result is known before the LeaderWorkerSet controller has acted."""
    return next((refusal for check in _SPEC if (refusal := check(d))), None)


def all_refusals(d: Draft) -> Iterator[Refusal]:
    """Every reason why an LWS at rest cannot be released, for commands that check objects before they are applied.

    Without the LWS, only the checks that do not need it.
    """
    yield from filter(None, (check(d) for check in _MANAGE))
    if d.o.stable is None:
        return
    checks = (invalid_spec, other_style, no_place) if d.beside_users else (*_SPEC, name_taken)
    yield from filter(None, (check(d) for check in checks))
    if d.o.rollout.spec.strategy.style is not None:
        yield from obstacles(d)
    if d.o.rollout.spec.strategy.style is not None:
        yield from left_behind(d)
    yield from filter(None, (_cannot_count(d),))
