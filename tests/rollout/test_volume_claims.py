"""The command that removes the claims which a surge leaves names every one of them, and no other."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from typing import Any

import pytest
from msgspec.structs import replace as change

from rollout_lws.rollout.groups.volume_claims import told_of_surge
from rollout_lws.workload.claims import kept
from tests.rollout.build import draft, held, in_step, rollout
from tests.workload.build import NAME, NAMESPACE, WORKER, lws


def told(replicas: int, surged: int, size: int, *claims: str, **policy: str) -> tuple[str, set[str]]:
    """The Event's note, and the names of the claims that stay."""
    template: dict[str, Any] = {
        "size": size,
        "workerTemplate": WORKER,
        "volumeClaimTemplates": [{"metadata": {"name": each}} for each in claims],
        "persistentVolumeClaimRetentionPolicy": policy,
    }
    facts = held(replicas)
    template_of = lws(replicas, template=template).spec.leader_worker_template
    spec = change(facts.workload.spec, leader_worker_template=template_of)
    facts = replace(facts, workload=change(facts.workload, spec=spec))
    plan = {"steps": [{"replicas": surged}], "capacity": "Surge"}
    d = draft(rollout(canary=plan, status=in_step(capacity="Surge")), stable=facts)
    d = told_of_surge(d)
    (event,) = d.events
    return event.note, {*kept(facts.workload, d.version, by_scaling=True).of(NAME, range(replicas, replicas + surged))}


def deleted(note: str) -> list[str]:
    """What the command of the note gives to kubectl."""
    command = note.partition("To remove them")[2].partition(": ")[2]
    script = f"kubectl() {{ printf '%s\\n' \"$@\"; }}; {command}"
    said = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert said[:4] == ["delete", "pvc", "-n", NAMESPACE], said
    return said[4:]


@pytest.mark.parametrize(
    ("replicas", "surged", "size", "claims", "policy"),
    [
        (4, 1, 2, ("cache",), {}),
        (4, 3, 2, ("cache",), {}),
        (4, 4, 2, ("cache",), {}),
        (12, 9, 1, ("cache",), {}),
        (15, 12, 8, ("cache", "data"), {}),
        (15, 12, 8, ("cache", "data"), {"whenScaled": "Delete"}),
        (9, 7, 4, ("cache",), {"whenDeleted": "Delete"}),
    ],
)
def test_the_command_names_all_claims_of_a_surge_that_stay(
    replicas: int, surged: int, size: int, claims: tuple[str, ...], policy: dict[str, str]
) -> None:
    note, stay = told(replicas, surged, size, *claims, **policy)
    names = deleted(note)
    assert (len(names), {*names}) == (len(stay), stay)
    assert note.startswith(f"{len(stay)} PersistentVolumeClaim")
    assert len(note) < 1024
