"""Missing permissions as text: which one the API server denies, and how an administrator grants it.

The Rollout's status, readiness, logs and doctor all use these texts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import CRON_JOBS, JOBS, Resource

#: Prefix of all roles that an installation gives the controller.
ROLES = "rollout-lws-controller"
#: How to restore missing permissions.
SOURCE = f"rollout-lws install and the chart give its roles, {ROLES}*, all that it needs"
#: The same of rights that only gates of Jobs need, which are given on request.
GATE_JOBS_SOURCE = "rollout-lws install --with gate-jobs gives it, and gates.jobs of the chart"

#: How to grant verbs on what ``named`` calls so.
Grant: TypeAlias = Callable[[str, str], str]


@dataclass(frozen=True, slots=True)
class Permission:
    """One verb on one resource, or its subresource, in ``namespace``: "" for all, or for a cluster-scoped resource."""

    verb: str
    resource: Resource
    namespace: str = ""
    subresource: str = ""

    def __str__(self) -> str:
        return f"{self.verb} {self.what}"

    @property
    def what(self) -> str:
        """The resource with its group, and the namespace."""
        return named(self.resource, self.namespace, self.subresource)


def named(resource: Resource, namespace: str = "", subresource: str = "") -> str:
    """``pods in namespace prod``, ``leases.coordination.k8s.io in all namespaces``."""
    part = f"/{subresource}" if subresource else ""
    if not resource.namespaced:
        return f"{resource}{part}"
    return f"{resource}{part} in {f'namespace {namespace}' if namespace else 'all namespaces'}"


def allow(verbs: str, what: str) -> str:
    """How to grant it, without a full stop; ``verbs`` such as "list and watch", ``what`` as from ``named``."""
    source = GATE_JOBS_SOURCE if what.startswith((f"{JOBS}", f"{CRON_JOBS}")) else SOURCE
    return f"allow the controller's account to {verbs} {what} ({source})"


def lent(verbs: str, what: str) -> str:
    """The same of the user of a command, whose own rights count."""
    return f"you may not {verbs} {what}: have it allowed, or give another --context or --as"


def is_denied(error: Exception, verb: str) -> bool:
    """Whether an authorizer denied it. Quotas, webhooks and policies also answer 403, with other messages."""
    return isinstance(error, ApiError) and error.code == 403 and f"cannot {verb} resource" in error.message
