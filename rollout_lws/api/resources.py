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


@dataclass(frozen=True, slots=True)
class Keys:
    """Labels, annotations and finalizers under one group."""

    group: str

    @property
    def original(self) -> str:
        """Annotation on an object that a release changed: {by, original, written}."""
        return f"{self.group}/original"

    @property
    def aborted(self) -> str:
        """Annotation on the stable LWS: the version that was aborted."""
        return f"{self.group}/aborted"

    @property
    def held(self) -> str:
        """Annotation on an LWS we left held: which version waits and how to open it."""
        return f"{self.group}/held"

    @property
    def release_hold(self) -> str:
        """The user's break-glass annotation on the LWS."""
        return f"{self.group}/release-hold"

    @property
    def canary_leader_worker_set(self) -> str:
        """Label on the canary LWS: the stable LWS's name."""
        return f"{self.group}/canary-leaderworkerset"

    @property
    def rollout_id(self) -> str:
        """Label (or annotation) of the user on the LWS, and our label on live leader pods."""
        return f"{self.group}/rollout-id"

    @property
    def rollout_batch_id(self) -> str:
        """Label on live leader pods: 1-based batch."""
        return f"{self.group}/rollout-batch-id"

    @property
    def history(self) -> str:
        """Label on the ControllerRevisions a Rollout keeps: its name."""
        return f"{self.group}/history"

    @property
    def template_hash(self) -> str:
        """Annotation on those ControllerRevisions: our hash of the version."""
        return f"{self.group}/template-hash"

    @property
    def revision(self) -> str:
        """Annotation on those ControllerRevisions: LWS's revision of the version when it was stored."""
        return f"{self.group}/revision"

    @property
    def rollback_reason(self) -> str:
        """Annotation on those ControllerRevisions: why the last release of the version did not end with it."""
        return f"{self.group}/rollback-reason"

    @property
    def rollout_finalizer(self) -> str:
        """Finalizer of a Rollout: it is removed when all that was changed has been restored."""
        return f"{self.group}/rollout"

    @property
    def batch_release_finalizer(self) -> str:
        """Finalizer of a BatchRelease: it goes when the canary is gone and nothing depends on the record."""
        return f"{self.group}/batch-release-finalizer"

    @property
    def canary_finalizer(self) -> str:
        """Finalizer of a canary LWS: it goes when nothing of the canary serves any more."""
        return f"finalizer.{self.group}/batch-release"

    def owns(self, key: str) -> bool:
        """Whether a label or annotation key is one of ours."""
        return key.startswith(f"{self.group}/")


@lru_cache
def keys(group: str = DEFAULT_API_GROUP) -> Keys:
    return Keys(group)
