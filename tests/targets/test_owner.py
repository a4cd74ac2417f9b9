"""Who has made a workload, and what it says of a release: a fact of the controlling owner reference alone."""

from __future__ import annotations

import pytest
from msgspec import structs

from rollout_lws.objects.meta import OwnerReference
from rollout_lws.targets.leader_worker_set import LeaderWorkerSet
from rollout_lws.targets.owner import cannot_be_written, disaggregated_set, instead_of, renamed_with_each_version
from tests.workload.build import lws

_SET = OwnerReference(
    api_version="disaggregatedset.x-k8s.io/v1", kind="DisaggregatedSet", name="chat", uid="u", controller=True
)


def made_by(*owners: OwnerReference, **labels: str) -> LeaderWorkerSet:
    found = lws(name="chat-0-1a2b3c4d-decode")
    return structs.replace(found, metadata=structs.replace(found.metadata, owner_references=owners, labels=labels))


@pytest.mark.parametrize(
    ("owners", "told"),
    [
        ((), False),
        ((_SET,), True),
        ((structs.replace(_SET, api_version="disaggregatedset.x-k8s.io/v2"),), True),
        ((structs.replace(_SET, api_version="apps.example.com/v1"),), False),
        ((structs.replace(_SET, api_version=""),), False),
        ((structs.replace(_SET, kind="DisaggregatedSetRoleScaler"),), False),
        ((structs.replace(_SET, controller=False),), False),
        ((OwnerReference(kind="Other", name="o", uid="o"), _SET), True),
    ],
)
def test_a_disaggregated_set_is_told_by_group_and_kind_of_the_controller(
    owners: tuple[OwnerReference, ...], told: bool
) -> None:
    workload = made_by(*owners, **{"disaggregatedset.x-k8s.io/name": "chat"})
    assert (disaggregated_set(workload) is not None) is told
    assert bool(renamed_with_each_version(workload)) is told
    assert ("docs/disaggregated-sets.md" in cannot_be_written(workload, paired=False)) is told


def test_another_controller_keeps_the_name_and_cannot_be_written_either() -> None:
    workload = made_by(OwnerReference(api_version="v1", kind="KServe", name="d", uid="d", controller=True))
    assert renamed_with_each_version(workload) == ""
    told = "LeaderWorkerSet chat-0-1a2b3c4d-decode is controlled by KServe d, which would undo a release: {}, or remove"
    assert cannot_be_written(workload, paired=False).startswith(told.format("release the KServe by its own means"))
    assert cannot_be_written(workload, paired=True).startswith(
        told.format("set touch: RouteOnly, with which no LeaderWorkerSet is written")
    )
    assert cannot_be_written(made_by(), paired=True) == ""


def test_a_disaggregated_set_is_no_workload_of_a_rollout_and_what_is_one_is_told() -> None:
    assert "touch: RouteOnly; docs/disaggregated-sets.md" in instead_of(_SET.api_version, _SET.kind)
    assert instead_of("apps.example.com/v1", _SET.kind) == instead_of("apps/v1", "Deployment") == ""
