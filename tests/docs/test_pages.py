"""What the documentation says holds: its commands run, its links lead somewhere, its lists are complete."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rollout_lws.api import ConditionType, SummaryState
from rollout_lws.rollout.reasons import EventReason, Reason
from tests.docs.pages import ROOT, anchors, blocks, links, pages
from tests.kubectl.programs import ROLLOUT_LWS, Programs

STATUS = Path("docs/status.md")
#: Verbs of the Makefile are tested by being used: CI runs them all.
_VERBS = ("make demo", "make test", "make install", "make check")


def commands(page: Path) -> list[str]:
    """What a reader of the page types, in order."""
    return [text for text in blocks(page, "bash") if text.strip() not in _VERBS]


@pytest.mark.kubectl
@pytest.mark.parametrize("page", [page for page in pages() if commands(page)], ids=str)
async def test_the_commands_of_a_page_run_in_their_order(page: Path, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    environment = {
        **os.environ,
        "PATH": f"{Path(ROLLOUT_LWS).parent}{os.pathsep}{os.environ['PATH']}",
        "KUBECONFIG": str(kubeconfig),
        "HOME": str(tmp_path),
    }
    programs = Programs()
    try:
        sandbox = await programs.start(
            ROLLOUT_LWS, "sandbox", "--controller", "--kubeconfig", str(kubeconfig), "--ready-after", "0.2s"
        )
        await sandbox.says("sandbox ready")
        script = "\n".join(["set -euxo pipefail", f"cd {ROOT}", *commands(page)])
        reader = await programs.start("bash", "-c", script, environment=environment)
        assert await reader.end(seconds=60) == 0, reader.output
    finally:
        await programs.close()


@pytest.mark.parametrize("page", pages(), ids=str)
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page):
        target, _, anchor = link.partition("#")
        place = (ROOT / page).parent / target if target else ROOT / page
        assert place.exists(), link
        if anchor:
            assert anchor in anchors(place.relative_to(ROOT)), link


@pytest.mark.parametrize("words", [SummaryState, Reason, EventReason, ConditionType], ids=lambda words: words.__name__)
def test_every_word_that_a_status_uses_is_explained(words: type[SummaryState | Reason | EventReason]) -> None:
    text = (ROOT / STATUS).read_text()
    assert [word.value for word in words if f"| `{word.value}` |" not in text] == []


def test_no_word_is_explained_that_nobody_uses() -> None:
    known = {word.value for words in (SummaryState, Reason, EventReason, ConditionType) for word in words}
    first_cells = [line.split("|")[1].strip() for line in (ROOT / STATUS).read_text().splitlines() if line[:3] == "| `"]
    assert [cell for cell in first_cells if cell.strip("`") not in known] == []
