"""What a command knows of a namespace when not all of it may be seen."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.api import keys
from rollout_lws.cli.cluster_snapshot import look
from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    HORIZONTAL_POD_AUTOSCALERS,
    INFERENCE_POOLS,
    LEADER_WORKER_SETS,
    SERVICES,
)

KEYS = keys()


class Answers:
    """A transport whose server refuses some paths: ``refused`` has an error by a part of the path."""

    namespace = "default"

    def __init__(self, refused: dict[str, ApiError], **items: list[Any]) -> None:
        self.refused, self.items = refused, items

    def get(self, path: str, **_: str) -> dict[str, Any]:
        plural = path.rpartition("/")[2]
        for part, error in self.refused.items():
            if part in path:
                raise error
        if CUSTOM_RESOURCE_DEFINITIONS.plural in path:
            return {"spec": {"versions": []}}
        return {"items": self.items.get(plural, [])}


FORBIDDEN = ApiError(403, "Forbidden", "you may not")
UNSERVED = ApiError(404, "NotFound", "404 page not found")


def test_what_may_not_be_listed_and_what_is_not_served_are_told_apart() -> None:
    refused = {HORIZONTAL_POD_AUTOSCALERS.plural: FORBIDDEN, INFERENCE_POOLS.plural: UNSERVED}
    found = look(Answers(refused), KEYS)  # type: ignore[arg-type]
    assert found.refused == {HORIZONTAL_POD_AUTOSCALERS: "you may not"}
    assert found.absent == {INFERENCE_POOLS}
    assert found.unknown(HORIZONTAL_POD_AUTOSCALERS) == "you may not"
    assert found.unknown(SERVICES) is None


@pytest.mark.parametrize("error", [FORBIDDEN, UNSERVED])
def test_without_what_every_release_needs_there_is_nothing_to_tell(error: ApiError) -> None:
    with pytest.raises(ApiError):
        look(Answers({LEADER_WORKER_SETS.plural + "": error, "definitions": FORBIDDEN}), KEYS)  # type: ignore[arg-type]


@pytest.mark.parametrize(("spec", "identity"), [({}, False), ({"groupIdentity": "Ordinal"}, True)])
def test_who_may_not_read_definitions_judges_by_what_lws_fills_in(spec: dict[str, Any], identity: bool) -> None:
    workload = {"metadata": {"name": "llama"}, "spec": spec}
    found = look(Answers({"definitions": FORBIDDEN}, leaderworkersets=[workload]), KEYS)  # type: ignore[arg-type]
    assert found.capabilities.group_identity is identity
    assert found.workload_schema == {}
