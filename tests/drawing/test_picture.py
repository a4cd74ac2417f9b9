"""A picture shows its course: bands as high as groups are many, lines where numbers are, and texts as texts."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from rollout_lws.drawing.course import Course, Kind, Moment, Stretch, Wait
from rollout_lws.drawing.foreseen import Asked, Held, course, way_back
from rollout_lws.drawing.geometry import spans
from rollout_lws.drawing.picture import NARROW, WIDTH, picture
from rollout_lws.drawing.scales import Times
from rollout_lws.forecast.model import Groups
from tests.docs import capacity
from tests.drawing.reading import BANDS, Picture

GPU = {"nvidia.com/gpu": 8}
STYLES = (*capacity.STYLES, *capacity.SWAPS, *capacity.PAIRS)


def example(style: str) -> Course:
    return course(capacity.of_example(style), style, "", Held(GPU, GPU))


def observed() -> Course:
    """A release under way, by hand: an approval was waited for, one is to come, and a group was recreated."""
    rest = Moment(0, Groups(2), Groups(), 0.0)
    made = (Moment(0, Groups(2), Groups(loading=1), 0.0), Moment(60, Groups(1, 1), Groups(1), 0.25))
    then = (Moment(300, Groups(2), Groups(1, 1), 0.5), Moment(400, Groups(2), Groups(2), 0.5))
    return Course(
        title="chat",
        facts="",
        replicas=2,
        rest=rest,
        stretches=(
            Stretch("step 1", 0, 300, made, (Wait(Kind.APPROVAL, 100, 300),)),
            Stretch("step 2", 300, 600, then, (Wait(Kind.GATE, 400, 600, "errors"), Wait(Kind.PAUSE, 400, 500)), True),
            Stretch("promotion", 600, 700, (Moment(600, Groups(), Groups(2), 1.0),)),
        ),
        now=350,
    )


@pytest.mark.parametrize("width", [WIDTH, NARROW])
@pytest.mark.parametrize("shown", [*map(example, STYLES), observed()], ids=lambda shown: shown.title)
def test_bands_are_as_high_as_groups_are_many(shown: Course, width: float) -> None:
    drawn = Picture(picture(shown, width))
    every = [*spans(shown, Times.of(shown, (), 50, width - 14))]
    unit = drawn.height("old", "ready", every[0].left) / shown.replicas
    assert unit > 10
    seen = 0
    for span in every:
        middle = (span.left + span.right) / 2
        if span.right - span.left > 0.1:
            seen += 1
            told = [getattr(getattr(span.moment, version), state) for version, state in BANDS]
            assert [round(drawn.height(*band, middle) / unit, 2) for band in BANDS] == told
    assert seen > 2
    assert all(now.right == pytest.approx(then.left) for now, then in pairwise(every))


@pytest.mark.parametrize("style", STYLES)
def test_lines_are_where_shares_and_accelerators_are(style: str) -> None:
    shown = example(style)
    drawn = Picture(picture(shown))
    every = [each for each in spans(shown, Times.of(shown, (), 50, WIDTH - 14)) if each.right - each.left > 0.1]
    shares = [(each.moment.share, *drawn.line("share", (each.left + each.right) / 2)) for each in every]
    [zero] = {y for share, y in shares if share == 0}
    [whole] = {y for share, y in shares if share == 1}
    assert all(y == pytest.approx(zero + (whole - zero) * share, abs=0.02) for share, y in shares)
    held = [(each.moment.accelerators[0], *drawn.line("held", (each.left + each.right) / 2)) for each in every]
    for (count, y), (other, below) in pairwise(sorted(held, reverse=True)):
        assert (y < below) if count > other else (y == below)
    assert held[0][0] == (64 if style == capacity.ROUTE_ONLY else 32)


def test_an_approval_has_a_width_and_no_time() -> None:
    drawn = Picture(picture(example("ExtraWorkload")))
    strips = drawn.boxes("asked-pale")
    assert [round(right - left, 2) for left, right in strips] == [16, 16]
    # While one is waited for, nothing changes.
    for left, right in strips:
        for band in BANDS:
            assert drawn.height(*band, left + 0.5) == drawn.height(*band, right - 0.5)
        assert drawn.line("share", left + 0.5) == drawn.line("share", right - 0.5)


def test_what_was_waited_for_has_the_time_that_it_took() -> None:
    drawn = Picture(picture(observed()))
    past, future = sorted(drawn.boxes("asked-pale"))
    assert past[1] - past[0] == pytest.approx(2 * (past[0] - 60), abs=0.02)
    assert future[1] - future[0] == pytest.approx(16)


def test_what_comes_after_now_is_paler() -> None:
    drawn = Picture(picture(observed()))
    [(left, right)] = drawn.boxes("later")
    assert right == WIDTH - 14
    # Now is halfway between the begin of step 2 and its group that is ready.
    [(_, step)] = [each for each in drawn.boxes("asked-pale") if each[1] - each[0] > 17]
    [(gate, _)] = drawn.boxes("gate")[:1]
    assert left == pytest.approx((step + gate) / 2, abs=0.02)
    assert Picture(picture(replace(observed(), now=None))).boxes("later") == []
    assert "What comes after 6 min is a forecast." in drawn.told("desc")


def test_pauses_and_gates_are_bars_that_do_not_cover_each_other() -> None:
    found = capacity.of_demo("ExtraWorkload")
    asked = {1: Asked(600, (("first-token", 300), ("errors", 600)))}
    rows = (replace(found.rows[0], waits=600, seconds=found.rows[0].seconds + 600), *found.rows[1:])
    drawn = Picture(picture(course(replace(found, rows=rows), "a", "", Held(), asked=asked)))
    assert {"first-token", "errors", "pause"} <= {*drawn.texts}
    assert drawn.texts[-2:] == ["pause", "gate"], "the legend has both"
    gates = sorted(drawn.boxes("gate"))[:2]
    [(left, _)] = sorted(drawn.boxes("pause"))[-1:]
    assert gates[0][0] == gates[1][0] == left


def test_names_of_steps_are_there_as_far_as_there_is_room() -> None:
    texts = Picture(picture(example("Surge"))).texts
    assert [text for text in texts if text.split()[0] in ("step", "promotion")] == ["step 1", "step 2", "promotion"]
    # A step that is the promotion itself takes no time.
    assert "step 3" not in texts


def test_the_axis_has_the_unit_that_fits() -> None:
    shown = observed()
    assert "min" in Picture(picture(shown)).texts
    short = course(capacity.of_example(capacity.ROUTE_ONLY), "a", "", Held(), asked={})
    assert "s" in Picture(picture(short)).texts


def test_pictures_side_by_side_have_one_scale() -> None:
    every = [example(style) for style in STYLES]
    drawn = [Picture(picture(each, NARROW, every)) for each in every]
    units = {round(each.height("old", "ready", 52) / 4, 3) for each in drawn}
    assert len(units) == 1
    assert len({each.root.get("height") for each in drawn}) <= 3
    # Ten minutes are as wide in each: the first group of all but one loads for so long.
    ready = {
        round(min(x for x in range(60, 380) if each.height("new", "ready", x + 0.01)), 1)
        for each, style in zip(drawn, STYLES, strict=True)
        if style != capacity.ROUTE_ONLY
    }
    assert len(ready) == 1


def test_a_way_back_begins_when_its_step_has_ended() -> None:
    found = capacity.of_example("InPlace")
    shown = way_back(found, 2, "back", "", Held(GPU, GPU))
    assert [each.name for each in shown.stretches] == ["step 1", "step 2", "way back"]
    assert [each.approval for each in shown.stretches] == [True, False, False]
    begins = found.rows[0].seconds + found.rows[1].seconds
    assert (shown.stretches[-1].begins, shown.seconds) == (begins, begins + found.rows[1].back_seconds)
    assert shown.stretches[-1].moments[-1].old == Groups(4)
    drawn = Picture(picture(shown))
    assert "old, loading" in drawn.texts


HOSTILE = '</text><script>alert(1)</script><a href="javascript:1">&amp;\x00\x1b[31m\ud800\u202e'


def test_names_and_messages_are_texts() -> None:
    shown = observed()
    first, *others = shown.stretches
    gate = Wait(Kind.GATE, 0, 300, HOSTILE)
    shown = replace(
        shown, title=HOSTILE, facts=HOSTILE, stretches=(replace(first, name=HOSTILE, waits=(gate,)), *others)
    )
    drawn = picture(
        replace(
            shown,
            resources=(HOSTILE,),
            rest=replace(shown.rest, accelerators=(1,)),
            stretches=tuple(
                replace(each, moments=tuple(replace(moment, accelerators=(1,)) for moment in each.moments))
                for each in shown.stretches
            ),
        )
    )
    read = Picture(drawn)
    tags = {each.tag.rpartition("}")[2] for each in read.root.iter()}
    assert tags == {"svg", "title", "desc", "style", "defs", "pattern", "rect", "path", "circle", "text"}
    assert "<script" in read.told("title")
    assert "\u202e" not in drawn
    assert drawn.encode().decode() == drawn


def test_nothing_is_fetched_and_nothing_runs() -> None:
    drawn = picture(example("Pair"))
    addresses = drawn.replace("http://www.w3.org/2000/svg", "")
    assert "http" not in addresses
    assert all(word not in drawn for word in ("<script", "onload", "@import", "<foreignObject"))


def test_those_who_do_not_see_it_are_told() -> None:
    drawn = Picture(picture(course(capacity.of_example("InPlace"), "llama", "4 groups", Held(GPU, GPU))))
    assert drawn.root.get("role") == "img"
    assert drawn.told("title") == "llama"
    assert drawn.told("desc").startswith(
        "4 groups. At rest: 4 old groups. Step 1, until 10 min: 3 old groups and 1 new group, 25% of requests to the"
        " new version, at most 32 nvidia.com/gpu, then an approval."
    )
