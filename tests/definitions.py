"""The CustomResourceDefinitions that most tests install first: rendered once in a process, as nobody changes them."""

from __future__ import annotations

from functools import cache
from typing import Any

from rollout_lws.api import crd
from rollout_lws.objects.resources import DEFAULT_API_GROUP
from rollout_lws.sandbox.definitions import lws_crd


@cache
def definitions(group: str = DEFAULT_API_GROUP) -> tuple[dict[str, Any], ...]:
    """Those of LeaderWorkerSet, Rollout and BatchRelease, in this order."""
    return (lws_crd.manifest(), *crd.render(group))
