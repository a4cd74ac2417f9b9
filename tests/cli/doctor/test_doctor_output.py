"""How a chain reads: a line a link, the one to look at in four parts, and a form for machines that stays."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from rollout_lws.cli.doctor.facts import changed_at
from rollout_lws.cli.doctor.links import Link, Name, State, ok
from rollout_lws.cli.doctor.output import document, text
from tests.docs.pages import ROOT

FINE = ok(Name.ROLLOUT, "Rollout/llama", "for LeaderWorkerSet llama")
WAITS = Link(Name.SCHEDULING, State.WAITING, "Pod/llama-0", "queued", "it comes", ("kubectl get workloads",))
BROKEN = Link(
    Name.CONTAINERS,
    State.BROKEN,
    "Pod/llama-canary-0",
    "pod llama-canary-0 (leader) container vllm: ImagePullBackOff: Back-off pulling image, and a long story besides",
    "the kubelet tries it again",
    ("kubectl describe pod llama-canary-0", "kubectl get events"),
    "no user yet: 4 of 4 groups of llama are ready",
)
UNREAD = Link(
    Name.ENDPOINTS,
    State.UNKNOWN,
    "Service/api",
    "endpointslices may not be read: forbidden",
    by_itself="the links after it are looked at all the same",
    next=("kubectl auth can-i list endpointslices",),
)


def test_the_first_broken_link_is_told_in_four_parts_and_what_waits_before_it_is_not() -> None:
    assert text([FINE, WAITS, BROKEN], 0) == [
        "v rollout      Rollout/llama        for LeaderWorkerSet llama",
        "… scheduling   Pod/llama-0          queued",
        "x containers   Pod/llama-canary-0   "
        "pod llama-canary-0 (leader) container vllm: ImagePullBackOff: Back-off pulling …",
        "",
        "First broken link: containers (Pod/llama-canary-0)",
        f"Cause      {BROKEN.found}",
        "Affected   no user yet: 4 of 4 groups of llama are ready",
        "By itself  the kubelet tries it again",
        "Next       kubectl describe pod llama-canary-0",
        "           kubectl get events",
    ]


def test_on_a_terminal_sentences_are_folded_and_commands_are_not() -> None:
    lines = text([BROKEN], 60)
    cause = lines.index("Cause      pod llama-canary-0 (leader) container vllm:")
    assert lines[cause + 1] == "           ImagePullBackOff: Back-off pulling image, and a"
    assert "Next       kubectl describe pod llama-canary-0" in lines


def test_what_is_waited_for_is_told_where_nothing_is_broken() -> None:
    lines = text([FINE, WAITS], 0)
    assert lines[3:5] == ["Nothing is broken; what is waited for first: scheduling (Pod/llama-0)", "Cause      queued"]


def test_what_could_not_be_read_is_told_last() -> None:
    assert text([FINE, UNREAD], 0)[3:] == [
        "Nothing that could be read is broken.",
        "",
        "Not read   endpointslices may not be read: forbidden",
        "           kubectl auth can-i list endpointslices",
    ]
    assert text([FINE], 0)[-1] == "Nothing is broken."


def test_the_form_for_machines() -> None:
    assert document("prod", "llama", [FINE, BROKEN]) == {
        "namespace": "prod",
        "name": "llama",
        "broken": "containers",
        "links": [
            {
                "name": "rollout",
                "state": "ok",
                "object": "Rollout/llama",
                "found": "for LeaderWorkerSet llama",
                "affected": "",
                "byItself": "",
                "next": [],
            },
            {
                "name": "containers",
                "state": "broken",
                "object": "Pod/llama-canary-0",
                "found": BROKEN.found,
                "affected": BROKEN.affected,
                "byItself": BROKEN.by_itself,
                "next": list(BROKEN.next),
            },
        ],
    }
    assert document("prod", "llama", [FINE, WAITS])["broken"] is None


def test_a_write_by_scale_is_one_and_one_of_the_status_is_none() -> None:
    times = {"scale": "2026-01-01T00:02:00Z", "status": "2026-01-01T00:03:00Z", "": "2026-01-01T00:01:00Z"}
    entries = [{"time": time, "subresource": name} if name else {"time": time} for name, time in times.items()]
    assert changed_at({"metadata": {"managedFields": entries}}) == datetime(2026, 1, 1, 0, 2, tzinfo=UTC)


@pytest.mark.parametrize("width", [0, 60])
def test_what_a_container_says_moves_no_cursor(width: int) -> None:
    said = Link(Name.CONTAINERS, State.BROKEN, "Pod/llama-0", "died:\n\x1b[2J\rall is well", "nothing")
    assert all(line.isprintable() for line in text([said], width))
    assert document("prod", "llama", [said])["links"][0]["found"] == said.found


def test_every_link_is_explained_in_the_documentation_in_its_order() -> None:
    rows = [line.split("|")[1].strip() for line in (ROOT / "docs/doctor.md").read_text().splitlines() if "| `" in line]
    assert [cell.strip("`") for cell in rows if cell.strip("`") in set(Name)] == list(Name)
