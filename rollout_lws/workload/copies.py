"""The name of a canary's copy of a user's object, and the labels and annotations that the copy carries: one definition
for the LeaderWorkerSet, its Services and its routes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from rollout_lws.targets.version import short_hash

if TYPE_CHECKING:
    from rollout_lws.api.resources import Keys

_SUFFIX = "-canary"

#: Other tools' labels and annotations that would make the tools treat the copy as theirs.
_NOT_COPIED = re.compile(
    r"^(kubectl\.kubernetes\.io/last-applied-configuration$"
    r"|argocd\.argoproj\.io/|(kustomize|helm)\.toolkit\.fluxcd\.io/|meta\.helm\.sh/|helm\.sh/"
    r"|app\.kubernetes\.io/(managed-by|instance)$|config\.(kubernetes|k8s)\.io/|rollouts\.kruise\.io/"
    r"|kueue\.x-k8s\.io/(?!queue-name$|priority-class$))"
)


def copy_name(name: str, budget: int) -> str:
    """``<name>-canary``, cut and hashed if longer than ``budget`` characters. Deterministic, so a retried create finds
    its own object.
    """
    if len(name) + len(_SUFFIX) <= budget:
        return name + _SUFFIX
    digest = short_hash(name)
    return f"{name[: budget - len(_SUFFIX) - len(digest) - 1].rstrip('-.')}-{digest}{_SUFFIX}"


def copied_marks(marks: Mapping[str, str], keys: Keys) -> dict[str, str]:
    """The labels or annotations of the copy: without ours and those of deployment tools."""
    return {key: value for key, value in marks.items() if not (keys.owns(key) or _NOT_COPIED.match(key))}
