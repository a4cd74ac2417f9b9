"""In which order an installation that is there already becomes another one: whichever write is the last that succeeds,
the controllers that then run have their rights, those of the version before too, which lead until a new one is ready.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rollout_lws.objects.resources import CLUSTER_ROLES

Object = dict[str, Any]


def writes(wanted: Iterable[Object], roles: Mapping[str, Object]) -> tuple[tuple[Object, ...], tuple[Object, ...]]:
    """What to apply, in this order, and what once no controller of the version before is left. ``roles`` are the
    ClusterRoles that the cluster has, by name: one that loses rules is in both, and keeps them in the first.
    """
    first: list[Object] = []
    last: list[Object] = []
    for each in wanted:
        before = roles.get(each["metadata"]["name"]) if each["kind"] == CLUSTER_ROLES.kind else None
        lost = [rule for rule in (before or {}).get("rules") or () if rule not in each["rules"]]
        if lost:
            first.append({**each, "rules": [*each["rules"], *lost]})
            last.append(each)
        else:
            first.append(each)
    return tuple(first), tuple(last)
