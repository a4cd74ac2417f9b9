"""What the documentation says holds: its commands run, its links lead somewhere, its lists are complete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from rollout_lws.api import ConditionType, Rollout, SummaryState
from rollout_lws.api.validation import problems
from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.rollout.reasons import EventReason, Reason
from tests.docs import recordings
from tests.docs.pages import ROOT, anchors, blocks, links, pages
from tests.reader import reading

STATUS = Path("docs/status.md")


def commands(page: Path) -> list[str]:
    """What a reader of the page types, in order; those of the examples have tests of their own."""
    return [] if page.parts[0] == "examples" else recordings.commands(page)


def verbs(page: Path) -> set[str]:
    """Verbs of the Makefile that the page tells its reader to use."""
    return set(re.findall(r"\bmake ([a-z]+)\b(?=`|$)", (ROOT / page).read_text(), re.MULTILINE))


#: Pages whose commands are run whenever tests are; the others in the longer lanes.
SOON = ("README.md", "docs/gate.md", "docs/look.md")


WITH_COMMANDS = [
    pytest.param(page, marks=() if str(page) in SOON else pytest.mark.long) for page in pages() if commands(page)
]


@pytest.mark.one_in(3)
@pytest.mark.kubectl
@pytest.mark.parametrize("page", WITH_COMMANDS, ids=str)
async def test_the_commands_of_a_page_run_in_their_order(page: Path, tmp_path: Path) -> None:
    async with reading(tmp_path) as reader:
        printed = await reader.run("\n".join(commands(page)))
    for now, then in zip(recordings.recorded(page, printed), recordings.recordings(page), strict=True):
        assert now.masked == then.masked, f"renew it with `python -m tests.docs.recordings`: {now.command}"


@pytest.mark.parametrize("page", pages(), ids=str)
def test_a_strategy_that_a_page_shows_can_be_released(page: Path) -> None:
    for block in blocks(page, "yaml"):
        shown = yaml.safe_load(block)
        if "strategy" in shown:
            workload = {"apiVersion": LEADER_WORKER_SETS.api_version, "kind": LEADER_WORKER_SETS.kind, "name": "chat"}
            spec = Rollout.model_validate({"spec": {"workloadRef": workload, **shown}}).spec
            assert problems(spec) == ()


def test_the_verbs_that_pages_name_are_in_the_makefile() -> None:
    known = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {verb for page in pages() for verb in verbs(page)} <= known
    assert {"demo", "test"} <= verbs(Path("README.md"))


@pytest.mark.parametrize("page", pages(), ids=str)
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page):
        target, _, anchor = link.partition("#")
        place = (ROOT / page).parent / target if target else ROOT / page
        assert place.exists(), link
        if anchor:
            assert anchor in anchors(place.relative_to(ROOT)), link


@pytest.mark.parametrize("page", pages(), ids=str)
def test_no_page_deletes_rollouts_without_saying_whose(page: Path) -> None:
    """Argo Rollouts has them, too, and `--all` takes those that kubectl finds first."""
    asked = re.findall(r"delete (?:rollouts?|ro|batchreleases?)(?=[\s`]).*", (ROOT / page).read_text())
    assert [line for line in asked if "-A" in line or "--all" in line] == []
    assert "delete -f crds" not in (ROOT / page).read_text()


@pytest.mark.parametrize("words", [SummaryState, Reason, EventReason, ConditionType], ids=lambda words: words.__name__)
def test_every_word_that_a_status_uses_is_explained(words: type[SummaryState | Reason | EventReason]) -> None:
    text = (ROOT / STATUS).read_text()
    assert [word.value for word in words if f"| `{word.value}` |" not in text] == []


def test_no_word_is_explained_that_nobody_uses() -> None:
    known = {word.value for words in (SummaryState, Reason, EventReason, ConditionType) for word in words}
    first_cells = [line.split("|")[1].strip() for line in (ROOT / STATUS).read_text().splitlines() if line[:3] == "| `"]
    assert [cell for cell in first_cells if cell.strip("`") not in known] == []
