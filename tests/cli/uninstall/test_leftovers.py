"""What is left of us on objects of others, and the command that takes it away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rollout_lws.cli.uninstall.leftovers import handed_down, leftovers
from rollout_lws.objects.resources import (
    CONTROLLER_REVISIONS,
    HTTP_ROUTES,
    LEADER_WORKER_SETS,
    PODS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)
from tests.cli.uninstall.held import KEYS, lws
from tests.reader import reading

Object = dict[str, Any]


def obj(*, finalizers: tuple[str, ...] = (), labels: Object | None = None, **annotations: str) -> Object:
    """``annotations`` are of ours, by the names of Keys."""
    marks = {getattr(KEYS, mark): text for mark, text in annotations.items()} | {"team": "a"}
    return {
        "metadata": {
            "name": "chat",
            "namespace": "prod",
            "labels": labels or {"team": "a"},
            "annotations": marks,
            "finalizers": [*finalizers],
        }
    }


def held(**marks: str) -> Object:
    made = lws("chat", by="uid-gone")
    made["metadata"] |= {"namespace": "prod"}
    if not marks:
        made["metadata"]["annotations"] = {}
    return made


CANARY = {KEYS.canary_leader_worker_set: "chat"}
OPEN = '{"spec":{"rolloutStrategy":{"rollingUpdateConfiguration":{"partition":0}}}}'


@pytest.mark.parametrize(
    ("resource", "found", "lines"),
    [
        (SERVICES, obj(), []),
        (
            SERVICES,
            obj(original="{}"),
            [
                "annotation rollouts.kruise.io/original, which says what stood there before: put that back, then:"
                " kubectl annotate services chat -n prod rollouts.kruise.io/original-"
            ],
        ),
        (
            HTTP_ROUTES,
            obj(labels={"rollouts.kruise.io/x": "1"}),
            [
                "label rollouts.kruise.io/x: kubectl label httproutes.gateway.networking.k8s.io chat -n prod"
                " rollouts.kruise.io/x-"
            ],
        ),
        (
            LEADER_WORKER_SETS,
            {**held(), "metadata": obj(labels=CANARY, finalizers=("own", KEYS.canary_finalizer))["metadata"]},
            [
                "canary of leaderworkerset/chat: kubectl delete leaderworkersets.leaderworkerset.x-k8s.io chat -n prod",
                "finalizer finalizer.rollouts.kruise.io/batch-release: kubectl patch"
                " leaderworkersets.leaderworkerset.x-k8s.io chat -n prod --type=merge -p"
                """ '{"metadata":{"finalizers":["own"]}}'""",
            ],
        ),
        (
            LEADER_WORKER_SETS,
            held(),
            [
                "partition 1000000; whatever version waits rolls by this: kubectl patch"
                " leaderworkersets.leaderworkerset.x-k8s.io chat -n prod --type=merge"
                f" -p '{OPEN}'"
            ],
        ),
        (
            LEADER_WORKER_SETS,
            {**lws("chat"), "metadata": obj(rollout_id="7")["metadata"]},
            [],
        ),
        (
            CONTROLLER_REVISIONS,
            obj(labels={KEYS.history: "chat"}, template_hash="x"),
            ["stored version of rollout/chat: kubectl delete controllerrevisions.apps chat -n prod"],
        ),
        (
            PODS,
            obj(labels={KEYS.rollout_batch_id: "1"}),
            ["label rollouts.kruise.io/rollout-batch-id: kubectl label pods chat -n prod"
             " rollouts.kruise.io/rollout-batch-id-"],
        ),
    ],
)  # fmt: skip
def test_each_is_named_with_its_command(resource: Resource, found: Object, lines: list[str]) -> None:
    assert list(leftovers({resource: [found]}, KEYS)) == lines


def test_copies_of_our_marks_go_and_those_of_others_stay() -> None:
    labels = {KEYS.rollout_id: "7", "team": "a"}
    assert handed_down(STATEFUL_SETS, obj(labels=labels, original="{}", held="text"), KEYS) == {
        "annotations": {KEYS.original: None, KEYS.held: None}
    }
    assert handed_down(STATEFUL_SETS, obj(labels=labels), KEYS) == {}


@pytest.mark.long
@pytest.mark.kubectl
async def test_the_commands_take_away_what_they_name(tmp_path: Path) -> None:
    """A Service and an LWS with everything that may be left, typed as it is told."""
    async with reading(tmp_path) as reader:
        service: Object = {
            **obj(original="{}", labels={"rollouts.kruise.io/x": "1"}),
            "spec": {"ports": [{"port": 80}]},
        }
        service["metadata"]["namespace"] = "default"
        reader.server.create(SERVICES, service)
        workload = held()
        workload["metadata"] = {"name": "chat", "namespace": "default", "finalizers": [KEYS.canary_finalizer]}
        reader.server.create(LEADER_WORKER_SETS, workload)

        def left() -> list[str]:
            kinds = (SERVICES, LEADER_WORKER_SETS, STATEFUL_SETS)
            return list(leftovers({each: reader.server.list(each, "") for each in kinds}, KEYS))

        told = left()
        assert len(told) == 4
        for line in told:
            await reader.run(line[line.index("kubectl ") :])
        assert left() == []
