"""A real Prometheus scrapes the model servers of a release and both controllers: what boards and alerts get of them.

One canary release on real nodes is told, which users ask, whose first step has gates and then waits, and which is
paused and aborted. The questions of boards are asked at two moments of it, of a panel with a time axis over all of the
time before.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from math import nan
from pathlib import Path
from typing import Any

import pytest

from rollout_lws.cli.install import manifests
from rollout_lws.cli.install.options import POD_MONITOR, Installation
from rollout_lws.kube.client import Client
from rollout_lws.objects.resources import NODES, POD_MONITORS, PODS
from rollout_lws.objects.writes import Patch
from tests.kubectl.programs import Programs
from tests.metrics.rules import RULES, alerts
from tests.metrics.test_boards import BOARDS, panels
from tests.metrics.test_documented import examples, questions
from tests.nodes import images, installation, users
from tests.nodes.cluster import Cluster
from tests.nodes.prometheus import Monitor, Prometheus, Series, has_data, needs_prometheus, program, prometheus
from tests.nodes.release import DRAINING, GROUPS, NAME, STREAM_SECONDS, Release, Style, groups_of
from tests.nodes.stories import everything

HOME = "watched"
PODS_OF_A_GROUP = 2
ACCELERATOR = "nvidia.com/gpu"
MEASURED = "first-token"
_GATES = (
    {"name": "warm-up", "when": "BeforeTraffic", "http": {"each": "Group", "path": "/v1/models"}},
    {"name": MEASURED, "metric": {"signal": "TimeToFirstToken", "max": "10s"}, "window": 30},
)
_PAUSE = {"approvalTimeoutSeconds": 3600}
_ONE_AND_ALL = ({"replicas": 1, "traffic": "10%", "gates": [*_GATES], "pause": _PAUSE}, {"replicas": "100%"})
STYLE = Style("canary", steps=_ONE_AND_ALL, shares=(10,))
REVISION = "leaderworkerset_sigs_k8s_io_template_revision_hash"
WORKLOAD = "leaderworkerset_sigs_k8s_io_name"

#: What a reader of a board has chosen, and what Grafana makes of a scrape each second.
CHOSEN = {"$namespace": HOME, "$rollout": NAME, "$__rate_interval": "5s", "$__range": "1h"}


@dataclass(frozen=True, slots=True)
class Question:
    """One query of a board; ``moment`` is true when it is asked for the present only, and not for a time."""

    name: str
    expr: str
    legend: str
    moment: bool

    @property
    def filled_in(self) -> str:
        return re.sub("|".join(map(re.escape, CHOSEN)), lambda found: CHOSEN[found[0]], self.expr)

    def legends(self, answer: Iterable[Series]) -> list[str]:
        """How the board names the series."""
        names = re.sub(r"\{\{(\w+)\}\}", r"{\1}", self.legend)
        return [names.format_map(defaultdict(str, each.labels)) for each in answer]


def asked() -> list[Question]:
    """By each panel, and by each kind of mark on the axes of time."""
    found = []
    for board in BOARDS:
        for panel in panels(board):
            for target in panel["targets"]:
                name = f"{board.stem}: {panel['title']} ({panel['type']}) {target['refId']}"
                # A table shows all labels.
                legend = "" if panel["type"] != "table" else "{{namespace}} {{rollout}} {{state}} {{reason}}"
                moment = target.get("instant", False)
                found.append(Question(name, target["expr"], target["legendFormat"] or legend, moment))
        for mark in json.loads(board.read_text())["annotations"]["list"]:
            legend = f"{mark['titleFormat']} {mark.get('textFormat', '')}"
            found.append(Question(f"{board.stem}: {mark['name']}", mark["expr"], legend, moment=False))
    return found


#: Panels that have nothing while the first step waits for approval, since nothing of the kind has been yet.
NOTHING_YET = {
    "fleet: How long releases take (timeseries) A",
    "fleet: How long releases take (timeseries) B",
    "fleet: How long people are waited for (timeseries) A",
    "fleet: Steps: how long (timeseries) A",
    "rollout: Waits (timeseries) B",
    "rollout: Waits (timeseries) C",
    "rollout: release ended",
}
#: Those that speak of a release that is on, and have nothing when it has been aborted.
NOTHING_ANY_MORE = {
    "rollout: Step (stat) A",
    "rollout: of (stat) A",
    "rollout: Late in (stat) A",
    "rollout: Accelerators waiting (stat) A",
}
#: Those that speak of the few seconds in which groups load: a scrape may meet none of them.
BRIEFLY = {"rollout: Groups that are not ready, by reason (timeseries) A"}
#: What panels say while the first step waits.
WAITING = {
    "fleet: Rollouts (stat) A": 1,
    "fleet: Releases on (stat) A": 1,
    "fleet: Wait for a person (stat) A": 1,
    "fleet: Pending under a hold (stat) A": 0,
    "fleet: Accelerators (stat) A": (GROUPS + 1) * PODS_OF_A_GROUP,
    "fleet: Accelerators waiting (stat) A": PODS_OF_A_GROUP,
    "fleet: Leaders (stat) A": 1,
    "rollout: Step (stat) A": 1,
    "rollout: of (stat) A": 2,
    "rollout: Accelerators waiting (stat) A": PODS_OF_A_GROUP,
}
#: And once it has been aborted.
ABORTED = {
    "fleet: Rollouts (stat) A": 1,
    "fleet: Releases on (stat) A": 0,
    "fleet: Wait for a person (stat) A": 0,
    "fleet: Pending under a hold (stat) A": 1,
    "fleet: Accelerators waiting (stat) A": 0,
    "fleet: Leaders (stat) A": 1,
}
#: The alert that the abort fires at once, and the one that begins to wait when no controller is scraped any more.
FIRES, WAITS = "RolloutWentBack", "RolloutLwsControllerDown"


def test_what_is_said_of_panels_and_alerts_is_of_such_as_there_are() -> None:
    names = [question.name for question in asked()]
    assert len(names) == len({*names})
    assert {*names} >= NOTHING_YET | NOTHING_ANY_MORE | BRIEFLY | WAITING.keys() | ABORTED.keys()
    assert alerts().keys() >= {FIRES, WAITS}
    assert (alerts()[FIRES].waits, alerts()[WAITS].waits) == (False, True)


@pytest.mark.parametrize(
    ("variables", "path", "found"),
    [
        ({}, "", None),
        ({}, "path", "path/prometheus"),
        ({"PROMTOOL": "tools/promtool"}, "", "tools/prometheus"),
        ({"PROMTOOL": "nowhere/promtool"}, "path", "path/prometheus"),
        ({"PROMETHEUS": "own/prometheus", "PROMTOOL": "tools/promtool"}, "path", "own/prometheus"),
    ],
)
def test_where_the_program_is_looked_for(
    variables: Mapping[str, str], path: str, found: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in ("path", "tools"):
        (tmp_path / each).mkdir()
        (tmp_path / each / "prometheus").touch(mode=0o755)
    for name in ("PROMETHEUS", "PROMTOOL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, str(tmp_path / value))
    monkeypatch.setenv("PATH", str(tmp_path / path) if path else "")
    assert program() == (tmp_path / found if found else None)


def monitors() -> tuple[Monitor, Monitor]:
    """Of the controllers, as `install --with pod-monitor` has it, and of the model servers, as documented."""
    installed = manifests.objects(Installation(images.PRODUCT, extras=(POD_MONITOR,)))
    (own,) = (each for each in installed if each["kind"] == POD_MONITORS.kind)
    (documented,) = (each for each in examples() if each.get("kind") == POD_MONITORS.kind)
    documented["metadata"]["namespace"] = HOME
    return Monitor.of(own), Monitor.of(documented)


def pod(name: str, phase: str = "Running", **more: Any) -> dict[str, Any]:
    labels = {"app": NAME, "leaderworkerset.sigs.k8s.io/name": "chat", "other": "x"}
    ports = [{"name": "http", "containerPort": 8000}, {"name": "other", "containerPort": 1}]
    status = {"phase": phase, "podIP": "10.244.1.7"}
    return {
        "metadata": {"name": name, "namespace": HOME, "labels": labels},
        "spec": {"containers": [{"name": "server", "ports": ports}]},
        "status": status,
        **more,
    }


def test_targets_are_those_of_a_pod_monitor() -> None:
    controllers, servers = monitors()
    assert (controllers.honor_labels, controllers.port, servers.honor_labels) == (True, "metrics", False)
    running = [
        pod("a"),
        pod("ended", "Failed"),
        pod("new", status={}),
        pod("b", metadata={"name": "b", "namespace": "x"}),
    ]
    labels = {"job": f"{HOME}/chat", "namespace": HOME, "pod": "a", "container": "server", "endpoint": "http"}
    assert servers.targets(running) == [{"targets": ["10.244.1.7:8000"], "labels": {**labels, WORKLOAD: "chat"}}]
    assert controllers.targets(running) == []


@needs_prometheus
@pytest.mark.nodes
@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.timeout(600)
async def test_boards_and_alerts_have_what_they_ask_for(nodes: Cluster, programs: Programs, tmp_path: Path) -> None:
    controllers, servers = monitors()
    release = Release(nodes.admin, nodes.plane.admin, HOME, programs)
    await _give_accelerators(nodes)
    if everything():
        # Controllers count what they have done, and have done much by now.
        await installation.Installation(nodes, programs).restart()
    async with AsyncExitStack() as stack:
        began = time.time()
        seen = await stack.enter_async_context(prometheus(tmp_path, nodes.logs, RULES, monitors()))
        replicas = seen.write(controllers, await _pods(nodes.admin))
        assert len(replicas) == 2
        await release.serve(STYLE, _groups)
        seen.write(servers, await _pods(nodes.admin))
        way = users.asking(
            "HTTPRoute",
            nodes.gateway.url,
            {"Host": release.host},
            tmp_path / "notes",
            streams=2,
            seconds=STREAM_SECONDS,
        )
        asking = await stack.enter_async_context(way)
        # It hears of targets within ten seconds, and has to follow the release from its begin.
        await seen.scrapes(controllers, replicas)
        await release.update("v2")
        # By then the step has its share.
        await release.reach(also=_is_measured)
        both = seen.write(servers, await _pods(nodes.admin))
        assert len(both) == (GROUPS + 1) * PODS_OF_A_GROUP
        await seen.scrapes(servers, both)

        await _model_servers(seen, asking)
        await release.at_step(1)
        await _says(seen, f'rollout_lws_state{{namespace="{HOME}",state="AwaitingApproval"}}')
        for kind in ("http", "metric"):
            passed = f'sum(rollout_lws_gate_results_total{{kind="{kind}",result="Passed"}})'
            assert [each.last for each in await _says(seen, passed)] == [1]
        await _variables(seen)
        await _boards(seen, began, NOTHING_YET, WAITING)
        for query in questions():
            await seen.query(query)
        assert await _alerts(seen) == set()
        fired = await seen.query_range('ALERTS{alertstate="firing"}', began, time.time())
        assert _ours(fired) == [], "an alert has fired, and nothing was wrong"

        await release.command("pause", NAME)
        await _says(seen, f'rollout_lws_paused_since_timestamp_seconds{{namespace="{HOME}"}}')
        await release.command("abort", NAME, "--reason", "a story")
        await release.reach("Aborted")
        await _says(seen, f'rollout_lws_state{{namespace="{HOME}",state="Aborted"}}')
        told = await _alarm(seen, FIRES, "firing", namespace=HOME, outcome="Aborted")
        assert f"{HOME}/{NAME}" in told["annotations"]["summary"]
        await _boards(seen, began, NOTHING_ANY_MORE, ABORTED)
        assert await _alerts(seen) == {FIRES}
        (ended,) = await seen.query('sum(increase(rollout_lws_releases_ended_total{outcome="Aborted"}[1h]))')
        assert ended.last > 0.5

        seen.write(controllers, ())
        await _alarm(seen, WAITS, "pending")
        assert await _alerts(seen) == {WAITS}
    # It complains of samples that contradict each other, of rules that fail, of files that it cannot read.
    assert (nodes.logs / "prometheus.log").read_text() == ""


def _is_measured(rollout: dict[str, Any]) -> bool:
    return MEASURED in {gate["name"] for gate in rollout["status"].get("gates", ())}


def _groups(tag: str) -> dict[str, Any]:
    """Each pod of a group takes an accelerator."""
    template = groups_of(DRAINING, tag)
    (server,) = template["workerTemplate"]["spec"]["containers"]
    server["resources"]["limits"][ACCELERATOR] = "1"
    return template


async def _give_accelerators(nodes: Cluster) -> None:
    """Each node has as many of them as the release has pods, as far as API server, scheduler and kubelet know."""
    there = {ACCELERATOR: str((GROUPS + 1) * PODS_OF_A_GROUP)}
    body = {"status": {"capacity": there, "allocatable": there}}
    for each in nodes.nodes:
        await nodes.admin.send(Patch(NODES, "", each.name, body, "pods ask for some", subresource="status"))


async def _pods(admin: Client) -> list[dict[str, Any]]:
    """Those that are not on their way out: controllers that were replaced just now may be."""
    items: list[dict[str, Any]] = json.loads(await admin.list(PODS))["items"]
    return [each for each in items if "deletionTimestamp" not in each["metadata"]]


async def _says(seen: Prometheus, expr: str) -> list[Series]:
    """What ``expr`` gives, as soon as that is something: what a status says is scraped within a second."""
    return await seen.until(lambda: seen.query(expr))


async def _alarm(seen: Prometheus, name: str, state: str, **labels: str) -> dict[str, Any]:
    """The alert with these labels once it is in this state."""

    async def there() -> dict[str, Any] | None:
        known = (await seen.rules())[name]["alerts"]
        fitting = (each for each in known if each["state"] == state and labels.items() <= each["labels"].items())
        return next(fitting, None)

    found = await seen.until(there)
    assert found is not None
    return found


async def _alerts(seen: Prometheus) -> set[str]:
    """Names of the alerts whose expressions give anything. All are answered, and evaluated as rules."""
    rules = await seen.rules()
    assert {name: rule["health"] for name, rule in rules.items()} == dict.fromkeys(alerts(), "ok")
    return {name for name, alert in alerts().items() if _ours(await seen.query(alert.expr))}


def _ours(answer: Sequence[Series]) -> list[Series]:
    """Without what is told of Rollouts of other tests."""
    return [each for each in answer if each.labels.get("namespace", HOME) == HOME]


async def _model_servers(seen: Prometheus, asking: users.Users) -> None:
    """vLLM's names have data of both versions, whose share of requests is that of the step."""
    expr = f"sum by ({REVISION}, {WORKLOAD}) (vllm:request_success_total)"
    before = {each.labels[WORKLOAD]: each for each in await seen.query(expr)}
    await asking.answered(1500)
    after = {each.labels[WORKLOAD]: each for each in await seen.query(expr)}
    assert before.keys() == after.keys() == {NAME, f"{NAME}-canary"}
    revisions = {each.labels[REVISION] for each in after.values()}
    assert len(revisions) == 2
    more = {name: after[name].last - before[name].last for name in after}
    share = more[f"{NAME}-canary"] / sum(more.values())
    print(f"by {sum(more.values()):.0f} requests the new version has {100 * share:.1f} %")
    assert abs(share - STYLE.shares[0] / 100) < 0.04, more
    for query in questions():
        if "vllm:" in query:
            answer = await seen.query(query)
            assert {each.labels[REVISION] for each in answer if has_data([each])} >= revisions, query
    for metric in ("vllm:num_requests_running", "vllm:num_requests_waiting"):
        assert {each.labels[WORKLOAD] for each in await seen.query(metric)} == after.keys()


async def _variables(seen: Prometheus) -> None:
    """What may be chosen on a board has what we have chosen."""
    for board in BOARDS:
        for each in json.loads(board.read_text())["templating"]["list"]:
            if each["type"] == "query":
                found = re.fullmatch(r"label_values\((.*), (\w+)\)", each["query"])
                assert found is not None
                metric = found[1].replace("$namespace", HOME)
                assert CHOSEN[f"${each['name']}"] in await seen.label_values(metric, found[2])


async def _boards(seen: Prometheus, began: float, nothing: set[str], said: Mapping[str, float]) -> None:
    """Every question of every board is answered: with something, but for those that have ``nothing``, and maybe those
    that have it only BRIEFLY.

    What was scraped for the first time just now is not there yet: a rate needs two scrapes, and the last step of an
    axis of time may lie before the first of them. So the questions are asked until the answers are those.
    """
    found: dict[Question, list[Series]] = {}

    async def all_said() -> bool:
        found.update(await _answers(seen, began))
        return _without_data(found) == nothing and _told(found, said) == said

    with suppress(TimeoutError):
        await seen.until(all_said)
    assert _without_data(found) == nothing
    assert _told(found, said) == said
    for each, answer in found.items():
        legends = each.legends(answer)
        assert len(legends) == len({*legends}), (each.name, [series.labels for series in answer])


async def _answers(seen: Prometheus, began: float) -> dict[Question, list[Series]]:
    now = time.time()
    questions = asked()
    answers = await asyncio.gather(
        *(
            seen.query(each.filled_in) if each.moment else seen.query_range(each.filled_in, began, now)
            for each in questions
        )
    )
    return dict(zip(questions, answers, strict=True))


def _without_data(found: Mapping[Question, list[Series]]) -> set[str]:
    return {each.name for each, answer in found.items() if not has_data(answer)} - BRIEFLY


def _told(found: Mapping[Question, list[Series]], said: Iterable[str]) -> dict[str, float]:
    """What the panels in ``said`` show; NaN stands for nothing."""
    return {each.name: answer[0].last if answer else nan for each, answer in found.items() if each.name in said}
