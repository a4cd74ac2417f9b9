"""Our kinds' names on the wire and the keys of every mark we put on other objects, for one API group.

The group is a setting: on a cluster that already runs OpenKruise Rollouts another one is rendered, and all keys carry
it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from rollout_lws.objects.resources import DEFAULT_API_GROUP, Resource

VERSION = "v1beta1"


@lru_cache
def rollouts(group: str = DEFAULT_API_GROUP) -> Resource:
    return Resource(group, VERSION, "Rollout", "rollouts")


@lru_cache
def batch_releases(group: str = DEFAULT_API_GROUP) -> Resource:
    return Resource(group, VERSION, "BatchRelease", "batchreleases")


class Key:
    """A key: ``form`` with the API group for "{}"; ``doc`` says where it is put, and what it has."""

    def __init__(self, form: str, doc: str) -> None:
        self._form = form
        self.__doc__ = doc

    def __get__(self, keys: Keys, _: type[Keys]) -> str:
        return self._form.format(keys.group)


@dataclass(frozen=True, slots=True)
class Keys:
    """Labels, annotations and finalizers under one group."""

    group: str

    original = Key("{}/original", "Annotation on an object that a release changed: {by, original, written}.")
    aborted = Key("{}/aborted", "Annotation on the stable LWS: the version that was aborted.")
    held = Key("{}/held", "Annotation on an LWS we left held: which version waits and how to open it.")
    release_hold = Key("{}/release-hold", "The user's break-glass annotation on the LWS.")
    canary_leader_worker_set = Key("{}/canary-leaderworkerset", "Label on the canary LWS: the stable LWS's name.")
    side = Key(
        "{}/side", "Label on both workloads of a pair that a release scales, or that change roles: active or parked."
    )
    stands_for = Key(
        "{}/stands-for",
        "Label on a workload that a release has made and that serves since: the name of the parked one that it stands"
        " for.",
    )
    made = Key(
        "{}/made-statefulset",
        "Label on the pods of a StatefulSet that a release has made, and in its selector: the StatefulSet's name. It is"
        " the only one by which they differ from pods of the user's.",
    )
    leave_as_is = Key(
        "{}/leave-as-is",
        "The user's annotation on a Rollout that is deleted or disabled: both workloads stay as they are.",
    )
    replicas = Key(
        "{}/replicas",
        "Annotation on the active side of a pair: its number of groups before a release took some of them.",
    )
    draining = Key(
        "{}/draining",
        "Annotation on the pods of a group that is about to go: {labels, since}, the labels that were removed so that"
        " it gets no more requests.",
    )
    rollout_id = Key(
        "{}/rollout-id", "Label (or annotation) of the user on the LWS, and our label on live leader pods."
    )
    rollout_batch_id = Key("{}/rollout-batch-id", "Label on live leader pods: 1-based batch.")
    history = Key("{}/history", "Label on the ControllerRevisions a Rollout keeps: its name.")
    template_hash = Key("{}/template-hash", "Annotation on those ControllerRevisions: our hash of the version.")
    revision = Key(
        "{}/revision", "Annotation on those ControllerRevisions: LWS's revision of the version when it was stored."
    )
    rollback_reason = Key(
        "{}/rollback-reason",
        "Annotation on those ControllerRevisions: why the last release of the version did not end with it.",
    )
    gate_of = Key("{}/gate-of", "Label on the Jobs of gates: the Rollout's name, cut to what a label can have.")
    gate = Key("{}/gate", "Label on the Jobs of gates: the gate's name.")
    rollout_finalizer = Key(
        "{}/rollout", "Finalizer of a Rollout: it is removed when all that was changed has been restored."
    )
    batch_release_finalizer = Key(
        "{}/batch-release-finalizer",
        "Finalizer of a BatchRelease: it goes when the canary is gone and nothing depends on the record.",
    )
    canary_finalizer = Key(
        "finalizer.{}/batch-release", "Finalizer of a canary LWS: it goes when nothing of the canary serves any more."
    )

    def owns(self, key: str) -> bool:
        """Whether a label or annotation key is one of ours."""
        return key.startswith(f"{self.group}/")


@lru_cache
def keys(group: str = DEFAULT_API_GROUP) -> Keys:
    return Keys(group)
