"""What a user is told, word by word: stories declare the messages that they make appear, and are held to them.

``tells`` watches every status that is written during a story and fails it when a declared message never stood there;
the same declarations say which reasons have a story at all.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from rollout_lws.api import ProgressingReason
from rollout_lws.controller.apply import verb
from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.rollout.reasons import EventReason, Reason
from rollout_lws.workload.hold import HOLD
from tests.scenarios.routed import of_router
from tests.scenarios.world import KEYS, NAME, World

Story = Callable[..., Awaitable[None]]

#: Reasons that some story makes a user see.
CONDITIONS: set[Reason] = set()
PROGRESSING: set[ProgressingReason] = set()
#: The same with each whole message.
MESSAGES: set[tuple[Reason, str]] = set()
EVENTS: set[EventReason] = set()
#: Modules with such stories.
FILES: set[str] = set()

#: What may have been written where a version waits: the hold, and stable's template for the way back.
ONLY_THE_HOLD = ["create ControllerRevision", f"patch LeaderWorkerSet {NAME}"]


class Ear:
    """Every condition and every phase that stood in the Rollout's status, in order of appearance."""

    def __init__(self, world: World) -> None:
        self.conditions: dict[tuple[str, str, str, str], None] = {}
        self.states: list[str] = []
        self._world = world
        world.server.store.subscribe(lambda _: self._listen())

    def _listen(self) -> None:
        status = self._world.status_of(self._world.name)
        for each in status.get("conditions", ()):
            self.conditions[each["type"], each["status"], each["reason"], each["message"]] = None
        state = (status.get("summary") or {}).get("state", "")
        if state and self.states[-1:] != [state]:
            self.states.append(state)

    def messages(self, reason: str, *kinds: str) -> list[str]:
        """Messages of conditions of these types that were True with ``reason``."""
        return [
            text for kind, truth, word, text in self.conditions if (truth, word) == ("True", reason) and kind in kinds
        ]


def tells(
    conditions: Mapping[Reason, str] | None = None,
    events: Mapping[EventReason, str] | None = None,
    progressing: tuple[ProgressingReason, ...] = (),
) -> Callable[[Story], Story]:
    """Hold a story to the full message of each condition (Ready, Reconciling or Stalled) and of each Event it names;
    what is told of an HTTPRoute is, of another kind, told of that.
    """
    CONDITIONS.update(conditions or {})
    MESSAGES.update((conditions or {}).items())
    EVENTS.update(events or {})
    PROGRESSING.update(progressing)

    def decorate(story: Story) -> Story:
        FILES.add(story.__module__)

        @functools.wraps(story)
        async def listened(world: World, **given: Any) -> None:
            ear = Ear(world)
            await story(world, **given)
            for reason, message in (conditions or {}).items():
                heard = ear.messages(reason, "Ready", "Reconciling", "Stalled")
                assert of_router(message) in heard, f"{reason}: {heard}"
            for event, note in (events or {}).items():
                notes = [each.note for each in world.events if each.reason == event]
                assert of_router(note) in notes, f"{event}: {notes}"
            for word in progressing:
                assert word in {reason for kind, _, reason, _ in ear.conditions if kind == "Progressing"}, word

        return listened

    return decorate


def touched(world: World) -> list[str]:
    """Verb and object of every write so far that was not to the Rollout itself."""
    found = set()
    for write in world.writes:
        if write.resource not in (world.ROLLOUT, world.RECORD) or write.name != world.name:
            kind = write.resource.kind
            found.add(f"{verb(write)} {kind}" if kind == "ControllerRevision" else f"{verb(write)} {kind} {write.name}")
    return sorted(found)


def assert_stalled(world: World, reason: Reason, message: str, *, phase: str, state: str = "Stalled") -> None:
    """What people, pipelines and kubectl see of a Rollout that waits for a person."""
    status, conditions, generation = world.status, world.true_conditions, world.rollout["metadata"]["generation"]
    stalled = conditions.get("Stalled", {})
    seen = (stalled.get("reason"), stalled.get("message"), status.get("message"), status.get("phase"), world.state)
    assert seen == (reason, message, message, phase, state), seen
    assert not {"Ready", "Reconciling"} & set(conditions), conditions
    assert (stalled["observedGeneration"], status["observedGeneration"]) == (generation, generation)


def assert_untouched(world: World) -> None:
    """Nothing was written but the Rollout's own status, and the LWS bears no mark."""
    assert touched(world) == [], touched(world)
    assert KEYS.rollout_finalizer not in world.rollout["metadata"].get("finalizers", ())
    found = world.get(LEADER_WORKER_SETS, NAME)
    if found is not None:
        assert found["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]["partition"] < HOLD
        assert not [key for key in found["metadata"].get("annotations", {}) if KEYS.owns(key)]


def assert_only_held(world: World, before: Mapping[str, str]) -> None:
    """The LWS is held, its groups are those of ``before`` (leader UIDs), and nothing of a release exists."""
    assert touched(world) == ONLY_THE_HOLD, touched(world)
    assert world.lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]["partition"] == HOLD
    assert world.leader_uids() == before
    assert world.names()["leaderworkersets"] == [NAME]
    assert world.names()["batchreleases"] == []
