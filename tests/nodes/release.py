"""A release on real nodes: a model server of three groups with a Service and an HTTPRoute, and what is done to it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from rollout_lws.api.resources import rollouts
from rollout_lws.kube.client import Client
from rollout_lws.objects.resources import HTTP_ROUTES, LEADER_WORKER_SETS, NAMESPACES, SERVICES
from rollout_lws.objects.writes import Create, Patch
from tests.e2e.contour import PARENT
from tests.e2e.waiting import condition, until
from tests.kubectl.programs import ROLLOUT_LWS, Programs
from tests.nodes import images

Object = dict[str, Any]

NAME, SERVICE = "chat", "chat-api"
ROLLOUTS = rollouts()
GROUPS = 3
#: Seconds: what a group loads; how long routers may need for what they have accepted; how long a stream is.
LOAD_SECONDS, GRACE_SECONDS, STREAM_SECONDS = 2, 2, 3
_IMAGE = f"{images.REGISTRY}/model-server"
_TAGS = tuple(each.rpartition(":")[2] for each in images.MODEL_SERVERS)
#: The tag of an image that no registry has; any other one but those of the images is a version of the last of them.
NOWHERE = "nowhere"
_PATIENCE = 300.0


@dataclass(frozen=True, slots=True)
class Pods:
    """How pods end: ``on_term`` is what the server does on SIGTERM, ``pre_stop`` how many seconds it serves before."""

    name: str
    on_term: str
    pre_stop: int = 0


#: As the documentation asks for, and as pods are that know nothing of it.
DRAINING = Pods("drain", "drain", pre_stop=3)
DYING = Pods("die at once", "die")


@dataclass(frozen=True, slots=True)
class Style:
    """A member of spec.strategy, the percentages of requests that its steps give the new version before the promotion,
    the seconds that requests get which run on groups that are to go, and whether the Rollout names the route.
    """

    name: str
    key: str = "canary"
    words: Mapping[str, Any] = field(default_factory=dict)
    steps: tuple[Object, ...] = ()
    shares: tuple[int, ...] = (10, 30)
    #: A stream that has just begun, and what it takes until no proxy leads another one there.
    drain: int = STREAM_SECONDS + GRACE_SECONDS
    routed: bool = True


_STEPS = ({"replicas": 1, "traffic": "10%", "pause": {}}, {"replicas": "50%", "traffic": "30%", "pause": {}})
_IN_PLACE = ({"replicas": 1, "traffic": "auto", "pause": {}}, {"replicas": "50%", "traffic": "auto", "pause": {}})
_END = {"replicas": "100%"}
CANARY = Style("canary", steps=(*_STEPS, _END))
SURGE = Style("surge", words={"capacity": "Surge"}, steps=(*_STEPS, _END))
IN_PLACE = Style("in place", words={"capacity": "InPlace"}, steps=(*_IN_PLACE, _END), shares=(33, 67))
BLUE_GREEN = Style(
    "blue-green",
    key="blueGreen",
    steps=(
        {"replicas": "100%", "traffic": "10%", "pause": {}},
        {"replicas": "100%", "traffic": "30%", "pause": {}},
        {"replicas": "100%", "traffic": "100%", "pause": {}},
    ),
    shares=(10, 30, 100),
)
#: Who sends this header gets the new version in the first step, and nobody else does.
TAG = {"x-canary": "yes"}
MATCHES = Style(
    "canary by header",
    steps=(
        {
            "replicas": 1,
            "matches": [{"headers": [{"name": name, "value": value} for name, value in TAG.items()]}],
            "pause": {},
        },
        _END,
    ),
    shares=(0,),
)
#: Services lead to groups of both versions alike.
UNROUTED = Style(
    "in place without a route",
    words={"capacity": "InPlace"},
    steps=({"replicas": 1, "pause": {}}, _END),
    shares=(33,),
    routed=False,
)
STYLES = (CANARY, SURGE, IN_PLACE, BLUE_GREEN)


class Release:
    """Rollout ``chat`` of LeaderWorkerSet ``chat`` in ``namespace``, whose routes go by the Gateway of the cluster.

    ``host`` is the name that the route takes requests for. Commands are those of a person who has ``kubeconfig``.
    """

    def __init__(self, admin: Client, kubeconfig: Path, namespace: str, programs: Programs) -> None:
        self.admin = admin
        self.namespace = namespace
        self.host = f"{namespace}.example.com"
        self._kubeconfig = kubeconfig
        self._programs = programs
        self._groups: Callable[[str], Object] = partial(groups_of, DRAINING)

    async def serve(self, style: Style, groups: Callable[[str], Object]) -> None:
        """All objects at version v1, until all groups are ready; ``groups`` makes the leaderWorkerTemplate of each
        version, by its tag.
        """
        self._groups = groups
        await self._create(NAMESPACES, self.namespace, "")
        spec = {"replicas": GROUPS, "leaderWorkerTemplate": groups("v1")}
        await self._create(LEADER_WORKER_SETS, NAME, spec=spec)
        selector = {"app": NAME, "leaderworkerset.sigs.k8s.io/worker-index": "0"}
        ports = [{"name": "http", "port": 80, "targetPort": "http"}]
        await self._create(SERVICES, SERVICE, spec={"selector": selector, "ports": ports})
        rule = {"timeouts": {"request": "10m"}, "backendRefs": [{"name": SERVICE, "port": 80}]}
        route = {"hostnames": [self.host], "parentRefs": [PARENT], "rules": [rule]}
        await self._create(HTTP_ROUTES, NAME, spec=route)
        await self._create(ROLLOUTS, NAME, spec=rollout(style))
        await until(self.admin, LEADER_WORKER_SETS, self.namespace, NAME, _is_available, _PATIENCE)
        await self.reach("Healthy")

    async def update(self, tag: str) -> None:
        """Another image in the template, as a person or a GitOps tool sets it."""
        change = {"spec": {"leaderWorkerTemplate": self._groups(tag)}}
        await self.admin.send(Patch(LEADER_WORKER_SETS, self.namespace, NAME, change, "a new version"))

    async def reach(self, *states: str, also: Callable[[Object], bool] = lambda _: True) -> Object:
        """The Rollout as soon as its state is one of these, or any, and ``also`` holds."""

        def there(seen: Object | None) -> bool:
            return seen is not None and (not states or state(seen) in states) and also(seen)

        found = await until(self.admin, ROLLOUTS, self.namespace, NAME, there, _PATIENCE)
        assert found is not None
        return found

    async def at_step(self, number: int) -> Object:
        """The Rollout once step ``number``, from 1, waits for approval: its share is accepted by then."""
        return await self.reach("AwaitingApproval", also=lambda seen: step(seen) == number)

    async def command(self, *given: str) -> list[str]:
        """What rollout-lws prints. AssertionError when it fails."""
        place = ("--kubeconfig", str(self._kubeconfig), "-n", self.namespace)
        program = await self._programs.start(ROLLOUT_LWS, *given, *place)
        assert await program.end(_PATIENCE) == 0, program.output
        return program.lines

    async def plan(self) -> Object:
        """What `plan` says of the next release, as JSON."""
        said: Object = json.loads("\n".join(await self.command("plan", NAME, "-o", "json")))
        return said

    async def get(self, resource: Any, name: str) -> Object:
        found: Object = json.loads(await self.admin.get(resource, self.namespace, name))
        return found

    async def _create(self, resource: Any, name: str, namespace: str | None = None, **members: Any) -> None:
        body = resource.manifest(name, self.namespace if namespace is None else namespace, **members)
        await self.admin.send(Create(resource, body, "a release on real nodes"))


def _is_available(seen: Object | None) -> bool:
    return condition(seen, "Available") == "True"


def state(rollout: Object) -> str:
    return str(((rollout.get("status") or {}).get("summary") or {}).get("state"))


def step(rollout: Object) -> int:
    status = rollout.get("status") or {}
    return int((status.get("canaryStatus") or status.get("blueGreenStatus") or {}).get("currentStepIndex", 0))


def groups_of(pods: Pods, tag: str) -> Object:
    """A leaderWorkerTemplate of groups of two."""
    return {"size": 2, "workerTemplate": pod_template(pods, tag)}


def pod_template(pods: Pods, tag: str, **more: Any) -> Object:
    """That of ``tag``; ``more`` are members of the pod's spec."""
    pod = {"terminationGracePeriodSeconds": 60, "containers": [container(tag, pods)], **more}
    return {"metadata": {"labels": {"app": NAME}}, "spec": pod}


def container(tag: str, pods: Pods) -> Object:
    image = tag if tag in (*_TAGS, NOWHERE) else _TAGS[-1]
    told = {"VERSION": tag, "LOAD_SECONDS": LOAD_SECONDS, "ON_TERM": pods.on_term}
    made: Object = {
        "name": "server",
        "image": f"{_IMAGE}:{image}",
        "imagePullPolicy": "IfNotPresent",
        "env": [{"name": name, "value": str(value)} for name, value in told.items()],
        "ports": [{"name": "http", "containerPort": 8000}],
        "readinessProbe": {"httpGet": {"path": "/health", "port": "http"}, "periodSeconds": 1},
        "resources": {"requests": {"cpu": "5m", "memory": "24Mi"}, "limits": {"memory": "128Mi"}},
    }
    if pods.pre_stop:
        hook = ["python3", "/model_server.py", "drain", str(pods.pre_stop)]
        made["lifecycle"] = {"preStop": {"exec": {"command": hook}}}
    return made


def rollout(style: Style) -> Object:
    reference = {"apiVersion": LEADER_WORKER_SETS.api_version, "kind": LEADER_WORKER_SETS.kind, "name": NAME}
    routing = {
        "service": SERVICE,
        "gateway": {"httpRouteName": NAME},
        "gracePeriodSeconds": GRACE_SECONDS,
        "drainSeconds": style.drain,
    }
    plan = {"steps": list(style.steps), **style.words} | ({"trafficRoutings": [routing]} if style.routed else {})
    return {"workloadRef": reference, "strategy": {style.key: plan}}
