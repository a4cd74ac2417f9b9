"""Where each right of the controller's role is told when it is missing."""

from __future__ import annotations

from rollout_lws.objects.permissions import SOURCE
from tests.controller.guarded import Right

#: Whose list the controller needs before it does anything.
ALWAYS = {
    "rollouts.rollouts.kruise.io",
    "batchreleases.rollouts.kruise.io",
    "leaderworkersets.leaderworkerset.x-k8s.io",
    "statefulsets.apps",
    "controllerrevisions.apps",
    "pods",
    "services",
    "customresourcedefinitions.apiextensions.k8s.io",
}
#: What a release does without: the words that it would have found there, and the marks and Events that it would leave.
COURTESIES = {
    "poddisruptionbudgets.policy",
    "workloads.kueue.x-k8s.io",
    "admissionchecks.kueue.x-k8s.io",
    "events.events.k8s.io",
}
_READS = ("list", "watch")


def needless(right: Right) -> bool:
    """Whether a release goes on without it."""
    return right.kind in COURTESIES or str(right) == "patch pods"


def told_by_readiness(right: Right) -> bool:
    """What no status can tell."""
    return (right.verb in _READS and right.kind in ALWAYS) or right.kind == "rollouts.rollouts.kruise.io/status"


def told_by_log_alone(right: Right) -> bool:
    """Also where there is no word of what a release waits for, and where it is asked for once in a release."""
    return needless(right) or right.kind == "events" or str(right) == "get leaderworkersets.leaderworkerset.x-k8s.io"


def told_by_status(right: Right) -> bool:
    return not told_by_readiness(right) and not told_by_log_alone(right)


def names(text: str, right: Right) -> bool:
    """Whether a text has the API server's words about this right, and where it comes from again."""
    return f'cannot {right.verb} resource "{right.resource}" in API group "{right.group}"' in text and SOURCE in text
