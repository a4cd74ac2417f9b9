"""What gates of the plan ask: whether it is there, and which of them wait for a user."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import assert_never, cast

from rollout_lws.api import FigureSource, GateResult, HttpGate, JobGate, MetricGate, PlannedGate, QueryGate, StepGate
from rollout_lws.cli.doctor.case import Case
from rollout_lws.cli.doctor.complaint import Complaint
from rollout_lws.cli.doctor.links import Link, Name, State, ok
from rollout_lws.objects.resources import CRON_JOBS, INFERENCE_POOLS, JOBS, SERVICES
from rollout_lws.rollout.commands import waiting, ways_on
from rollout_lws.rollout.gates.kinds.jobs.job import lacking
from rollout_lws.rollout.gates.kinds.jobs.manifest import from_cron_job
from rollout_lws.rollout.gates.records import known_records, planned
from rollout_lws.rollout.history import stable_version
from rollout_lws.rollout.metrics_endpoints import metrics_port, requests_port
from rollout_lws.targets.version import Version
from rollout_lws.traffic.dialling import NotAsked, port_name

_SETTLED = (GateResult.PASSED, GateResult.SKIPPED)


@dataclass(frozen=True, slots=True)
class _Lack:
    """What a gate needs and has not: of which object, why not, and the commands that show more."""

    about: str
    text: str
    next: tuple[str, ...]


def links(case: Case) -> Iterator[Link]:
    """A link for each object that lacks what gates need, and one for all gates; none for a plan without gates."""
    ahead = _ahead(case)
    if case.facts.observation.stable is None or case.is_leaving or not ahead:
        return
    lacks: dict[_Lack, list[PlannedGate]] = {}
    unread: dict[str, Link] = {}
    for gate in ahead:
        hidden = _unread(case, gate)
        if hidden is not None:
            unread[hidden.about] = hidden
            continue
        for lack in _lacks(case, gate):
            lacks.setdefault(lack, []).append(gate)
    yield from unread.values()
    yield from (_lacked(case, lack, gates) for lack, gates in lacks.items())
    about, complaint = f"Rollout/{case.name}", case.complaint
    found = case.complained(Name.GATES, about)
    if found is not None and complaint is not None:
        yield replace(found, by_itself="nothing, until a user acts", next=_ways_on(case, complaint))
    elif not lacks and not unread:
        yield ok(Name.GATES, about, f"{len(ahead)} of the plan are ahead, and what they ask is there")


def _ahead(case: Case) -> tuple[PlannedGate, ...]:
    """Gates that are not behind: in a release those of its step and of later ones, at rest all."""
    style = case.d.o.rollout.spec.strategy.style
    if style is None:
        return ()
    if not case.is_on:
        return (*style.gates, *style.every_gate)
    later = style.steps[max(0, case.d.sub.current_step_index) :]
    return (*style.gates, *planned(case.d), *(gate for step in later for gate in step.gates))


def _awaited(case: Case, gates: list[PlannedGate]) -> dict[str, GateResult | None]:
    """Those whose answer the release that is on needs in its step, by name, with the result that is no verdict yet."""
    if not case.is_on:
        return {}
    results = {name: record.result for (name, _), record in known_records(case.d).items()}
    watched = {each.name: each for each in case.d.status.release_gates if each.finished_at is None}
    names = (gate.name for gate in gates if gate in planned(case.d) or gate.name in watched)
    return {name: results.get(name) for name in names if results.get(name) not in _SETTLED}


def _lacked(case: Case, lack: _Lack, gates: list[PlannedGate]) -> Link:
    names, awaited = ", ".join(dict.fromkeys(gate.name for gate in gates)), _awaited(case, gates)
    text = f"gate{'s' if ',' in names else ''} {names}: {lack.text}"
    if not awaited:
        by_itself = "nothing; it is needed when the release comes to that step"
        return Link(Name.GATES, State.WAITING, lack.about, text, by_itself, lack.next)
    if None in awaited.values():
        by_itself = "the gate goes on as soon as it is there; when its time is over, the release waits for a user"
        return Link(Name.GATES, State.BROKEN, lack.about, text, by_itself, lack.next)
    by_itself = "nothing: the gate's time is over, and it is measured again when a user says so"
    return Link(Name.GATES, State.BROKEN, lack.about, text, by_itself, (*lack.next, case.itself("retry")))


def _unread(case: Case, gate: PlannedGate) -> Link | None:
    match gate.asked:
        case JobGate() as job:
            return case.unread(Name.GATES, f"{CRON_JOBS.kind}/{job.from_cron_job}", CRON_JOBS, JOBS)
        case HttpGate(service=str() as service):
            return case.unread(Name.GATES, f"{SERVICES.kind}/{service}", SERVICES)
        case HttpGate() | MetricGate() | QueryGate() | None:
            return None
        case unknown:
            assert_never(unknown)


def _lacks(case: Case, gate: PlannedGate) -> Iterator[_Lack]:
    match gate.asked:
        case MetricGate() as metric:
            yield from _figures(case, metric)
        case HttpGate() as http:
            yield from _of_service(case, http) if http.service is not None else _of_groups(case, http)
        case JobGate():
            asking = cast(StepGate, gate)
            told = lacking(case.d, asking)
            if told:
                yield _Lack(f"{CRON_JOBS.kind}/{from_cron_job(asking)}", told, (case.kubectl("get cronjobs"),))
        case QueryGate() | None:
            return
        case unknown:
            assert_never(unknown)


def _figures(case: Case, metric: MetricGate) -> Iterator[_Lack]:
    source, facts = case.d.o.rollout.spec.strategy.source, case.d.o.routing
    if metric.of is not None and facts is not None:
        pools = (facts.names.canary_pool, facts.names.stable_pool if metric.max_to_stable is not None else None)
        yield from (_unpicked(case, pool) for pool in pools if pool and facts.pickers.get(pool) == {})
    if source.from_ is not FigureSource.PODS:
        return
    versions: list[Version | None] = [case.d.version]
    if metric.max_to_stable is not None:
        versions.append(stable_version(case.d))
    if not all(metrics_port(each.leader_template, source.pods.port) for each in versions if each is not None):
        yield _undeclared(case, source.pods.port, "of its metrics, or name one in spec.strategy.analysis.pods.port")


def _unpicked(case: Case, pool: str) -> _Lack:
    return _Lack(
        f"{INFERENCE_POOLS.kind}/{pool}",
        f"the Service that InferencePool {pool} names in endpointPickerRef has no ready pod: start the picker",
        (case.kubectl(f"get {INFERENCE_POOLS} {pool} -o jsonpath='{{.spec.endpointPickerRef}}'"),),
    )


def _of_groups(case: Case, http: HttpGate) -> Iterator[_Lack]:
    port = str(http.port) if http.port is not None else None
    if not requests_port(case.d.version.leader_template, port):
        yield _undeclared(case, port, "that is asked, or name one in http.port")


def _undeclared(case: Case, port: str | None, remedy: str) -> _Lack:
    name, kind, what = case.workload_name, case.target, "no port" if port is None else f"no port {port}"
    template = "the template" if kind.labels.leader is None else "the leaders' template"
    return _Lack(
        case.named(name),
        f"{template} of {name} declares {what}, so its pods are not asked: declare the port {remedy}",
        (case.kubectl(f"get {kind.resource} {name} -o jsonpath='{{.spec.{kind.template}}}'"),),
    )


def _of_service(case: Case, http: HttpGate) -> Iterator[_Lack]:
    name = http.service or ""
    try:
        port_name(case.facts.gate_services.get(name), case.namespace, str(http.port) if http.port is not None else "")
    except NotAsked as error:
        steps = (case.kubectl(f"get service {name} -o yaml"),)
        yield _Lack(f"{SERVICES.kind}/{name}", f"Service {name} {error}", steps)


def _ways_on(case: Case, complaint: Complaint) -> tuple[str, ...]:
    logs = (case.kubectl(f"logs job/{each.job}") for each in waiting(case.d.status) if each.job)
    return (*logs, *ways_on(case.d.o.rollout.metadata, case.d.status, complaint.verbs))
