"""What releases ask of a real API server, and how soon the controller goes on: by the server's own account."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from rollout_lws.kube.client import Client
from tests.bench import account
from tests.bench.figures import Figure, markdown, percentile
from tests.bench.journal import EVENT, LABEL, RELEASE, WINDOW, Accepted, Counted, Entry, Ready, Write
from tests.bench.measures import controller
from tests.bench.processes import Progress, child
from tests.bench.releases import ALL, HANDS_ON, ROUTED_STEPS
from tests.e2e import audit
from tests.e2e.bench.person import Person, Trial, each
from tests.e2e.cluster import CONTROLLER, Cluster
from tests.e2e.costs import journal
from tests.e2e.plane import connected
from tests.scenarios.styles import BLUE_GREEN, IN_PLACE, SURGE

#: A release and the controller's writes in it.
Told = tuple[Trial, list[Write]]

_GREEN = (
    {"replicas": "50%", "traffic": "0%", "pause": {"duration": 2}},
    {"replicas": "100%", "traffic": "100%", "pause": {"duration": 2}},
)
#: Releases whose writes are counted.
COUNTED = (
    Trial("canary-3", ROUTED_STEPS[:3]),
    Trial("canary-5", ROUTED_STEPS),
    Trial("in-place-3", ROUTED_STEPS[:3], IN_PLACE),
    Trial("surge-3", ROUTED_STEPS[:3], SURGE),
    Trial("blue-green-2", _GREEN, BLUE_GREEN),
)
#: The most that each may take, apart from windows, labels and Events.
MOST = 60
#: Releases that wait for nobody, so many rounds of two at a time; each is a sample for every step and every renewal.
ROUNDS = 6
#: More weighted canaries, for samples of accepted routes, two at a time.
WEIGHTED = 4
_AT_A_TIME = 2
#: Events and the last status may come after a release is Healthy; counted is what has come by then.
_AFTERMATH_SECONDS = 2.0
_START_SECONDS = 60.0


async def measure(whole: Cluster, logs: Path, progress: Progress) -> tuple[list[Figure], str]:
    """Figures of releases on a cluster whose audit log has FOLLOWED in full, and their writes one by one."""
    async with child("releases", *controller(whole.controller), logs=logs) as running:
        await running.logged("controller started", _START_SECONDS)
        return await _released(whole, progress)


async def _released(whole: Cluster, progress: Progress) -> tuple[list[Figure], str]:
    async with connected(whole.plane.admin) as connection:
        person = Person(Client(connection))
        small = [
            # Loads that differ keep the releases from moving in step.
            Trial(f"small-{turn}-{number}", (*HANDS_ON, ALL), replicas=4, load=0.2 + 0.037 * number)
            for turn in range(ROUNDS)
            for number in range(_AT_A_TIME)
        ]
        weighted = [Trial(f"weighted-{number}", ROUTED_STEPS) for number in range(WEIGHTED)]
        since: dict[str, float] = {}
        trials = [*COUNTED, *small, *weighted]
        for start in range(0, len(trials), _AT_A_TIME):
            some = trials[start : start + _AT_A_TIME]
            progress(f"releases: {' and '.join(trial.namespace for trial in some)}")
            await each(person.prepare(trial) for trial in some)
            since |= {trial.namespace: time.time() for trial in some}
            await each(person.release(trial) for trial in some)
        await asyncio.sleep(_AFTERMATH_SECONDS)
    told = journal(audit.read(whole.plane.audit_log), CONTROLLER)
    entries = {name: [one for one in told[name] if one.at >= begun] for name, begun in since.items()}
    ready, known = (
        [wait for trial in small for wait in account.waits(entries[trial.namespace], moment)]
        for moment in (Ready, Counted)
    )
    accepted = [
        wait
        for trial in (*COUNTED, *weighted)
        if trial.steps == ROUTED_STEPS
        # Later acceptances are the promotion's and the end's, which wait for groups and drains besides.
        for wait in account.waits(entries[trial.namespace], Accepted)[: len(trial.steps)]
    ]
    counted = [(trial, [one for one in entries[trial.namespace] if isinstance(one, Write)]) for trial in COUNTED]
    return [*_waits(ready, known, accepted), *_costs(counted)], _details(counted)


def _waits(ready: Sequence[float], counted: Sequence[float], accepted: Sequence[float]) -> Iterable[Figure]:
    for what, samples, goals in (
        ("last pod of a batch ready", ready, (180, None)),
        ("StatefulSet controller has counted it", counted, (None, None)),
        ("route accepted", accepted, (None, 100)),
    ):
        for share, goal in zip((0.5, 0.99), goals, strict=True):
            name = f"{what} → next write ({len(samples)} samples), p{100 * share:g}"
            yield Figure(name, 1000 * percentile(samples, share), goal, "ms")


def _costs(counted: Sequence[Told]) -> Iterable[Figure]:
    for trial, writes in counted:
        yield Figure(f"writes of {_named(trial)}", account.purposes(writes)[RELEASE], MOST)
    every = [one for _, writes in counted for one in writes]
    refused = sum(account.refused(every).values())
    yield Figure(f"refused, of all {len(every)} writes of these {len(counted)}", 100 * refused / len(every), 1, "%")


def _named(trial: Trial) -> str:
    return f"{trial.style}, {len(trial.steps)} weighted steps, R = {trial.replicas}"


_APART = {WINDOW: "promotion windows", LABEL: "leader labels", EVENT: "Events"}


def _details(counted: Sequence[Told]) -> str:
    """Accepted writes by verb and resource in a table, a column for each release; then what is counted apart."""
    columns: list[Counter[str]] = []
    for _, writes in counted:
        columns.append(Counter(one.what for one in writes if one.accepted and one.purpose == RELEASE))
    rows = [
        (what, *(str(column[what]) for column in columns))
        for what in sorted({what for column in columns for what in column})
    ]
    rows.append(("**all of these**", *(str(column.total()) for column in columns)))
    purposes = [account.purposes(writes) for _, writes in counted]
    rows += [(f"apart: {words}", *(str(of[purpose]) for of in purposes)) for purpose, words in _APART.items()]
    rows.append(("refused and made again", *(_share(writes) for _, writes in counted)))
    return markdown(("accepted writes", *(trial.namespace for trial, _ in counted)), rows)


def _share(writes: Sequence[Entry]) -> str:
    refused = account.refused(writes).total()
    return f"{refused} ({100 * refused / len(writes):.1f} %)"
