"""Stories run in virtual time: ten minutes of model loading cost milliseconds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.sampling import sees_each_change
from tests.scenarios import providers_table
from tests.scenarios.routed import ROUTES
from tests.scenarios.world import World


@pytest.fixture(autouse=True)
def pace(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """In how much detail the controller of this story's worlds sees what happens."""
    monkeypatch.setattr(World, "each_change", sees_each_change(request.node))


@pytest.fixture
def router(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """By what this story shares requests."""
    monkeypatch.setattr(ROUTES, "provider", request.param)


@pytest.fixture(autouse=True)
def shared_by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """Holds a traffic story to the providers that it declares; gives those with which it is told."""
    made = set[str]()
    monkeypatch.setattr(ROUTES, "made", made)
    yield made
    said = providers_table.declared(request.node)
    assert said is None or made <= said, f"told with {sorted(made)}, and declared are {sorted(said)}"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """Notes with which providers a traffic story was told: the report of its call has the notes that there are then."""
    if call.when != "call" or not isinstance(item, pytest.Function) or providers_table.declared(item) is None:
        return
    module = item.nodeid.partition("::")[0].rpartition("/")[2].removesuffix(".py")
    for name in sorted(item.funcargs["shared_by"]):
        item.user_properties.append(providers_table.Told(module, name).note())


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    yield made
    made.close()
