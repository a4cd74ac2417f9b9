"""Teams whose pipelines apply a version and wait for it, again and again, each with an LWS and a Rollout of its own."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rollout_lws.cli.rollouts import rollouts_of
from rollout_lws.objects.resources import DEFAULT_API_GROUP, LEADER_WORKER_SETS, LWS_NAME, PODS
from rollout_lws.sandbox.behaviours.faults import PREFIX
from rollout_lws.sandbox.store import Event
from tests.reader import Reader

Object = dict[str, Any]
ROLLOUTS = rollouts_of(DEFAULT_API_GROUP)
_SECONDS = 20
_LAST = re.compile(r"^result=(\w+) rollout=default/(\S+) release=(\S+) exit=(\d+)$", re.MULTILINE)

WORKLOAD = """\
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata:
  name: {name}
  labels:
    rollouts.kruise.io/rollout-id: {release}
spec:
  replicas: 2
  leaderWorkerTemplate:
    size: 1
    workerTemplate:
      metadata:
        annotations: {{{behaviour}}}
      spec:
        containers: [{{name: server, image: "model:{version}"}}]
"""

ROLLOUT = """\
apiVersion: rollouts.kruise.io/v1beta1
kind: Rollout
metadata:
  name: {name}
spec:
  workloadRef: {{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, name: {name}}}
  strategy:
    canary:
      steps: [{{replicas: 1, pause: {{duration: 0}}}}, {{replicas: 100%}}]
"""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a gate said: the word and the exit code of its last line."""

    word: str
    code: int


class Pipeline:
    """One team. ``served`` are the versions that all groups have had at some moment since the last ``forget``."""

    def __init__(self, reader: Reader, home: Path, name: str) -> None:
        self.reader, self.name = reader, name
        self._file = home / f"{name}.yaml"
        self._releases = 0
        self.version, self.good = "", ""
        self.served: set[str] = set()
        reader.server.store.subscribe(self._look)

    def write(self, version: str, *, broken: bool = False) -> str:
        """Put a version into the team's repository, under an id of its own; the id."""
        self._releases += 1
        release = f"{self.name}-{self._releases}"
        behaviour = f"{PREFIX}fail: CrashLoopBackOff" if broken else ""
        text = WORKLOAD.format(name=self.name, release=release, behaviour=behaviour, version=version)
        self._file.write_text(text)
        self.version = version
        if not broken:
            self.good = version
        return release

    async def begin(self) -> None:
        """The first version, at rest."""
        self.write("v0")
        rollout = ROLLOUT.format(name=self.name)
        await self.reader.run(f"{self.apply}\nkubectl wait lws/{self.name} --for=condition=Available --timeout=20s")
        await self.reader.run(f"echo '{rollout}' | kubectl apply -f -\nrollout-lws status {self.name} --timeout 20s")

    @property
    def apply(self) -> str:
        return f"kubectl apply -f {self._file}"

    async def gate(self) -> Answer:
        """Apply and gate in one line, with our command line."""
        told = await self.reader.run(f"{self.apply} && rollout-lws status {self.name} --timeout {_SECONDS}s || true")
        return self.answer(told)

    async def gate_by_id(self, release: str) -> Answer:
        """Wait for a release that somebody else applies, now or soon."""
        status = f"rollout-lws status {self.name} --release-id {release}"
        return self.answer(await self.reader.run(f"{status} --timeout {_SECONDS}s || true"))

    def is_about(self, release: str) -> bool:
        """Whether the controller has seen the release."""
        return bool(self._status.get("observedRolloutID") == release)

    def answer(self, told: str) -> Answer:
        found = _LAST.findall(told)
        assert len(found) == 1, told
        ((word, name, _, code),) = found
        assert name == self.name
        return Answer(word, int(code))

    async def wait_twice(self, release: str, condition: str) -> None:
        """Apply and gate with nothing but kubectl: for the id, then for the end."""
        wait = f"kubectl wait rollout/{self.name} --timeout={_SECONDS}s"
        seen = f"{wait} --for=jsonpath='{{.status.observedRolloutID}}'={release}"
        await self.reader.run(f"{self.apply} && {seen} && {wait} --for=condition={condition}")

    async def aborted(self) -> None:
        """Somebody aborts, as soon as the release of the version in the repository is on."""
        await self.until(lambda: self._status.get("phase") == "Progressing" and self._wanted() == self.version)
        asked = {"status": {"requestedAction": {"type": "Abort", "id": f"abort-{self._releases}"}}}
        self.reader.server.patch(ROLLOUTS, "default", self.name, asked, subresource="status")

    async def until(self, holds: Callable[[], bool]) -> None:
        done = asyncio.Event()

        def look(_: Event | None = None) -> None:
            if holds():
                done.set()

        forget = self.reader.server.store.subscribe(look)
        try:
            look()
            await asyncio.wait_for(done.wait(), _SECONDS)
        finally:
            forget()

    def running(self) -> set[str]:
        """The versions of the groups that are there and ready now; "" stands for one that is not."""
        pods = self.reader.server.list(PODS, "default", label_selector=f"{LWS_NAME}={self.name}")
        live = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        found = {_version(pod) if _is_ready(pod) else "" for pod in live}
        return found if len(live) == 2 else found | {""}

    def forget(self) -> None:
        self.served = set()

    def _look(self, event: Event) -> None:
        if event.resource == PODS and event.object["metadata"].get("labels", {}).get(LWS_NAME) == self.name:
            running = self.running()
            if len(running) == 1:
                self.served |= running

    @property
    def _status(self) -> Object:
        found: Object = self.reader.server.get(ROLLOUTS, "default", self.name).get("status") or {}
        return found

    def _wanted(self) -> str:
        """The version that the status is about."""
        lws = self.reader.server.get(LEADER_WORKER_SETS, "default", self.name)
        seen = self._status.get("observedWorkloadGeneration") == lws["metadata"]["generation"]
        return _version(lws["spec"]["leaderWorkerTemplate"]["workerTemplate"]) if seen else ""


def _version(pod: Object) -> str:
    return str(pod["spec"]["containers"][0]["image"].rpartition(":")[2])


def _is_ready(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def acts(seed: str, count: int, known: tuple[str, ...]) -> list[str]:
    """What a team does in each round: each of what it may do, in an order that the seed decides."""
    dice = random.Random(seed)
    chosen = [known[number % len(known)] for number in range(count)]
    dice.shuffle(chosen)
    return chosen
