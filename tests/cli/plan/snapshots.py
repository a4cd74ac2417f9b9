"""Worlds of stories as a command of the command line sees them."""

from __future__ import annotations

from rollout_lws.api.resources import batch_releases
from rollout_lws.cli.plan.model import Plan
from rollout_lws.cli.plan.overlay import overlaid
from rollout_lws.cli.plan.planning import make
from rollout_lws.objects import resources as kinds
from rollout_lws.observe.observer import observe
from rollout_lws.observe.snapshot import Object, Snapshot
from rollout_lws.rollout.observation import Observation
from rollout_lws.sandbox.definitions import lws_crd
from rollout_lws.traffic.registry import ROUTING_KINDS
from tests.scenarios.world import KEYS, NAME, NAMESPACE, ROLLOUTS, World

SEEN = (
    ROLLOUTS,
    batch_releases(),
    kinds.LEADER_WORKER_SETS,
    kinds.PODS,
    kinds.STATEFUL_SETS,
    kinds.CONTROLLER_REVISIONS,
    kinds.SERVICES,
    *ROUTING_KINDS,
    kinds.POD_DISRUPTION_BUDGETS,
    kinds.HORIZONTAL_POD_AUTOSCALERS,
)


def snapshot(world: World) -> Snapshot:
    objects = {each: world.server.list(each, NAMESPACE) for each in SEEN}
    schema = lws_crd.manifest()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return Snapshot(KEYS, objects, workload_schema=schema)


def seen(world: World, *manifests: Object) -> Observation:
    """A world as it is, or as it would be with these manifests applied."""
    found = observe(overlaid(snapshot(world), manifests, NAMESPACE), NAME, world.now)
    assert found is not None
    return found


def plan_of(world: World) -> Plan:
    """The plan of what stands in a world at rest."""
    return make(seen(world), services=services_of(world))


def services_of(world: World) -> dict[str, Object]:
    """All Services by name."""
    return {each["metadata"]["name"]: each for each in world.server.list(kinds.SERVICES, NAMESPACE)}
