"""The two workloads of a swap: that of the user, and the one that a release has made, which serve in turn.

The role is a label on the made workload, changed in one write: with ``stands-for`` it serves, and the user's workload
is parked; without, it is a canary, which goes when its release is over. A status that was wiped or forged changes
nothing. Between two releases only one of the two has groups, but for those that stay for a while (``kept_groups``).
"""

from __future__ import annotations

from rollout_lws.capacity.extra_workload import remove
from rollout_lws.rollout.decision import FieldRef
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.reasons import EventReason, Reason
from rollout_lws.rollout.roles.writes import label, patch, scaled_to_zero
from rollout_lws.rollout.routing.route_result import DONE, Routed
from rollout_lws.rollout.routing.sides import ACTIVE, PARKED
from rollout_lws.rollout.state import Promoting
from rollout_lws.workload.groups import groups
from rollout_lws.workload.hold import hold
from rollout_lws.workload.revisions import is_empty


def have_turned(d: Draft) -> bool:
    """True if the roles have changed in the release's hand-over, and the status does not say so yet."""
    stable, other = d.status.stable, d.o.canary
    if d.paired or not isinstance(d.state, Promoting) or stable is None or other is None or d.o.stable is None:
        return False
    return stable.workload_uid == other.workload.metadata.uid


def turn(d: Draft) -> Draft:
    """Changes the roles, in one write."""
    made = d.o.stable if d.swapped else d.o.canary
    if made is None:
        return d
    told = f"{d.new_name} has all requests"
    if d.swapped:
        labels = {d.keys.stands_for: None, d.keys.side: None, d.keys.canary_leader_worker_set: d.other_name}
        return d.write((patch(made, {"metadata": {"labels": labels}}, told),))
    labels = {d.keys.stands_for: d.name, d.keys.side: ACTIVE, d.keys.canary_leader_worker_set: None}
    held = hold(made.workload, d.keys, d.uid, counted=True) or {}
    # It outlives its release, and the user's workload. From now on it is held, as that is.
    metadata = {**held.get("metadata", {}), "labels": labels, "ownerReferences": []}
    return d.write((patch(made, {**held, "metadata": metadata}, told),))


def follow_role(d: Draft) -> Draft:
    """Mirrors the role in the status, for people, and on the user's workload, once it is parked no more."""
    d = d.set(active=d.name if d.swapped else None)
    meta = d.stable.workload.metadata
    if d.swapped:
        labels = {d.keys.stands_for: d.other_name, d.keys.side: ACTIVE}
        body: dict[str, object] = {"labels": labels} if not labels.items() <= meta.labels.items() else {}
        if not (meta.terminating or d.keys.canary_finalizer in meta.finalizers):
            # Its groups serve on if a person deletes it, until the requests are elsewhere.
            body["finalizers"] = [*meta.finalizers, d.keys.canary_finalizer]
        return d.write((patch(d.stable, {"metadata": body}, "it serves"),)) if body else d
    if meta.labels.get(d.keys.side) is None or d.o.canary is not None:
        return d
    return d.write((patch(d.stable, {"metadata": {"labels": {d.keys.side: None}}}, "it has all requests"),))


def clear(d: Draft, *, told: bool = False) -> tuple[Draft, Routed]:
    """Removes the workload that a release has made and no request reaches any more, or scales the user's to 0; done
    when it has no groups. ``told``: groups there were of no release, and an Event says that they go.
    """
    if not d.swapped:
        result = remove(d.made, d.keys)
        return d.take(result), Routed(result.done, result.message)
    users = d.o.canary
    if users is None:
        return d, DONE
    if users.workload.replicas == 0:
        d, labelled = label(d, (users,), PARKED)
        return d, Routed(labelled.done and is_empty(users), f"the groups of {users.called} are going")
    serves, instead = (any(group.ready(d.now) for group in groups(each)) for each in (d.stable, users))
    if d.replicas and instead and not serves:
        return d, Routed(False, f"no group of {d.name} is ready, so that {users.called} keeps its groups")
    if told and users.workload.metadata.labels.get(d.keys.side) == PARKED:
        note = f"{users.called} had {users.workload.replicas} groups without a release: it was scaled to 0"
        d = d.event(EventReason.REPLICAS_RESET, f"{note}; scale the Rollout instead", warning=True)
    return scaled_to_zero(d, (users,), f"{d.name} has all requests, and {users.called} is scaled to 0")


def label_parked(d: Draft) -> Draft:
    """Labels the user's workload as the one without requests, while the other one serves."""
    users = d.o.canary if d.swapped else None
    return label(d, (users,), PARKED)[0] if users is not None else d


def hold_parked(d: Draft) -> Draft:
    """Holds the user's workload while its groups go, so that a version which is applied to it starts nothing."""
    users = d.o.canary
    if not d.swapped or users is None or not users.workload.replicas:
        return d
    body = hold(users.workload, d.keys, d.uid, counted=True)
    return d if body is None else d.write((patch(users, body, "nothing starts until its requests have ended"),))


def leaves_as_is(d: Draft) -> bool:
    """True if a person wants both workloads to stay as they are when the Rollout leaves."""
    return d.o.rollout.metadata.annotations.get(d.keys.leave_as_is) == "true"


def goes_home(d: Draft) -> bool:
    """True if a Rollout that leaves first brings the requests to the user's workload, as a person has asked."""
    return d.swapped and bool(d.status.start_requested) and not leaves_as_is(d)


def stays_away(d: Draft) -> Draft:
    """Gives the verdict of a Rollout that may not leave: the user's manifest would start nothing, or other groups."""
    users, key, meta = d.o.canary, d.keys.leave_as_is, d.o.rollout.metadata
    if users is None:
        without, create = f"{d.kind} {d.other_name} does not exist", "create it, and then "
    else:
        count = users.workload.replicas
        without, create = f"{users.called} has {f'{count} groups of no release' if count else 'no groups'}", ""
    place = "" if meta.namespace == "default" else f" -n {meta.namespace}"
    return d.stalled(
        Reason.STANDS_IN,
        f"{d.name} serves, and {without}: to have its requests brought there first: {create}{d.command('home')}; to"
        f" leave both as they are: kubectl annotate rollout {meta.name}{place} {key}=true",
        field=FieldRef("metadata.annotations"),
    )


def users_missing(d: Draft) -> Draft:
    """Gives the verdict while the user's workload does not exist."""
    return d.stalled(
        Reason.WORKLOAD_NOT_FOUND,
        f"{d.kind} {d.other_name} does not exist in namespace {d.o.rollout.metadata.namespace}; {d.name} serves on:"
        f" create it, with the version to release next",
        field=FieldRef("", d.kind, d.other_name),
    )
