"""Permissions in words: which one an API server denies, and what an administrator does about it.

Everybody who tells of a missing permission says it with these words: the Rollout's status, readiness, the log, doctor.
"""

from __future__ import annotations

from dataclasses import dataclass

from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import Resource

#: What the names of all roles begin with that an installation gives the controller.
ROLES = "rollout-lws-controller"
#: Where a missing permission comes from again.
SOURCE = f"rollout-lws install and the chart give its roles, {ROLES}*, all that it needs"


@dataclass(frozen=True, slots=True)
class Permission:
    """One verb on one resource, or its subresource, in ``namespace``: "" for all of them, or where there are none."""

    verb: str
    resource: Resource
    namespace: str = ""
    subresource: str = ""

    def __str__(self) -> str:
        return f"{self.verb} {self.what}"

    @property
    def what(self) -> str:
        """The resource with its group, and the place."""
        return named(self.resource, self.namespace, self.subresource)


def named(resource: Resource, namespace: str = "", subresource: str = "") -> str:
    """``pods in namespace prod``, ``leases.coordination.k8s.io in all namespaces``."""
    part = f"/{subresource}" if subresource else ""
    if not resource.namespaced:
        return f"{resource}{part}"
    return f"{resource}{part} in {f'namespace {namespace}' if namespace else 'all namespaces'}"


def allow(verbs: str, what: str) -> str:
    """What to do about it, without a full stop; ``verbs`` as in "list and watch", ``what`` as ``named`` gives it."""
    return f"allow the controller's account to {verbs} {what} ({SOURCE})"


def is_denied(error: Exception, verb: str) -> bool:
    """Whether an authorizer said no. Quotas, webhooks and policies answer 403 as well, in other words."""
    return isinstance(error, ApiError) and error.code == 403 and f"cannot {verb} resource" in error.message
