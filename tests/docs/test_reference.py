"""The generated pages of reference are up to date, and say something of everything."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar

import pytest
from pydantic import Field

from rollout_lws.api import Model
from rollout_lws.api.structural import structural
from tests.docs import api_reference, flags
from tests.docs.pages import ROOT, anchors


class Inner(Model):
    """What is inside."""

    size: Annotated[int, Field(ge=1)] = 2
    """How large."""


class Outer(Model):
    """What is around it."""

    always: ClassVar[frozenset[str]] = frozenset()

    inner: tuple[Inner, ...]
    """All of them."""
    word: Annotated[str, Field(pattern="^(a|b)$")] | None = None
    """Either | or."""


class Silent(Model):
    """It has a field that says nothing."""

    what: str = ""


def sections(model: type[Model]) -> dict[str, api_reference.Section]:
    made = api_reference.Sections()
    made.add(model, structural(model), "Outer.spec")
    return made.found


@pytest.mark.parametrize("made", [api_reference, flags], ids=lambda module: module.PAGE.name)
def test_the_page_is_up_to_date(made: object) -> None:
    page = api_reference.page() if made is api_reference else flags.page()
    place = api_reference.PAGE if made is api_reference else flags.PAGE
    assert place.read_text() == page, "run: make generate"


def test_a_type_has_its_fields_with_their_limits_and_where_it_is_used() -> None:
    outer, inner = sections(Outer).values()
    assert inner.places == ["Outer.spec.inner[]"]
    assert inner.rows == [("`size`", "integer", "`2`", "1 to any", "How large.")]
    assert outer.rows == [
        ("`inner`", "list of [Inner](#inner)", "required", "", "All of them."),
        ("`word`", "text", "", "<code>^(a&#124;b)$</code>", "Either &#124; or."),
    ]


def test_what_says_nothing_of_itself_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"Outer\.spec\.what has no description"):
        sections(Silent)


def test_types_are_linked_to_their_sections() -> None:
    page = api_reference.PAGE.relative_to(ROOT)
    linked = set(re.findall(r"\]\(#(\w+)\)", api_reference.PAGE.read_text()))
    assert linked <= anchors(page)
    assert {"step", "trafficrouting", "condition", "releasebatch"} <= linked


def test_every_command_has_its_section() -> None:
    typed = {path for path, _ in flags.commands()}
    assert {"rollout-lws get", "rollout-lws set image", "rollout-lws controller"} <= typed
