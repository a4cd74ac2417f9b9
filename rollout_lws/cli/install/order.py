"""In which order an installation that is there already becomes another one: whichever write is the last that succeeds,
the controller that then runs has its rights.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rollout_lws.objects.resources import CLUSTER_ROLES

Object = dict[str, Any]


def writes(wanted: Iterable[Object], roles: Mapping[str, Object]) -> tuple[Object, ...]:
    """What to apply, in this order. ``roles`` are the ClusterRoles that the cluster has, by name: a role that loses
    rules keeps them until everything else is applied, the Deployment too.
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
    return (*first, *last)
