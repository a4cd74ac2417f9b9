"""The page on pairs, where a manifest states replicas: its commands have the pair adopted, and no group ends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rollout_lws.objects.resources import LEADER_WORKER_SETS
from tests.docs.pages import ROOT
from tests.reader import Reader, reading

PAGE = ROOT / "docs/pairs.md"
BLUE, GREEN = "helper-blue", "helper-green"
STATED = "sed 's/^spec:$/spec:\\n  replicas: 4/' examples/pair/blue.yaml > stated.yaml"
REFUSED = "kubectl wait rollout/helper --for=jsonpath='{.status.verdict.reason}'=ReplicasApplied --timeout=10s"
IN_CARE = "kubectl wait rollout/helper --for=condition=Ready --timeout=10s"


@pytest.fixture
async def reader(tmp_path: Path) -> AsyncIterator[Reader]:
    async with reading(tmp_path) as someone:
        yield someone


def told(begins: str) -> str:
    """The first block of bash after the words with which a paragraph begins."""
    _, _, rest = PAGE.read_text().partition(f"\n**{begins}")
    return rest.partition("```bash\n")[2].partition("```")[0]


def replicas(reader: Reader) -> dict[str, int]:
    return {each["metadata"]["name"]: each["spec"]["replicas"] for each in reader.server.list(LEADER_WORKER_SETS)}


@pytest.mark.long
@pytest.mark.kubectl
@pytest.mark.parametrize(
    ("applies", "begins"),
    [("kubectl apply", "`kubectl apply`**"), ("kubectl apply --server-side", "Server-side apply**")],
)
async def test_a_number_that_a_manifest_states_changes_hands(reader: Reader, applies: str, begins: str) -> None:
    await reader.run(f"""
        {STATED}
        {applies} -f stated.yaml
        kubectl wait lws/{BLUE} --for=jsonpath='{{.status.readyReplicas}}'=4 --timeout=10s
        {applies} -f examples/pair/green.yaml
        kubectl scale lws {GREEN} --replicas=0
        kubectl apply $(ls examples/pair/*.yaml | grep -v 'blue\\|green' | sed 's/^/-f /')
        {REFUSED}
    """)
    before = reader.leaders(BLUE)
    await reader.run(told(begins))
    await reader.run(f"{applies} -f examples/pair/blue.yaml -f examples/pair/green.yaml")
    await reader.run(IN_CARE)
    await reader.run(f"{applies} -f examples/pair/blue.yaml -f examples/pair/green.yaml")
    assert replicas(reader) == {BLUE: 4, GREEN: 0}
    assert reader.leaders(BLUE) == before
