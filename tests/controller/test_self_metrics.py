"""Why informers do not follow the cluster, told in readiness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import pytest

from rollout_lws.controller.self_metrics import unlisted
from rollout_lws.objects.resources import CONTROLLER_REVISIONS, PODS, Resource


@dataclass(frozen=True)
class Seen:
    """What ``unlisted`` reads of an informer."""

    resource: Resource
    is_synced: bool = False
    denied: bool = False
    trouble: str = ""


SYNCED = Seen(PODS, is_synced=True)
ON_ITS_WAY = Seen(CONTROLLER_REVISIONS)
DENIED = Seen(CONTROLLER_REVISIONS, denied=True, trouble="cannot list")
LISTING = f"{CONTROLLER_REVISIONS}: the first list is on its way\n"
REFUSED = f"{CONTROLLER_REVISIONS}: cannot list\n"


@pytest.mark.parametrize(
    ("informers", "told"),
    [
        ([SYNCED], ""),
        ([ON_ITS_WAY, SYNCED], LISTING),
        ([ON_ITS_WAY, ON_ITS_WAY], LISTING),
        ([DENIED, ON_ITS_WAY], REFUSED + LISTING),
        ([ON_ITS_WAY, DENIED], LISTING + REFUSED),
        ([DENIED, DENIED], REFUSED),
        ([Seen(PODS, is_synced=True, denied=True, trouble="cannot watch")], f"{PODS}: cannot watch\n"),
    ],
)
def test_each_reason_is_told_once_also_where_several_informers_follow_one_resource(
    informers: list[Seen], told: str
) -> None:
    assert unlisted(cast(Any, informers)) == told
