"""What others do to a release in a walk: they edit, delete and make anew what it borrows, and what it has written.

A method is called as an act is, and takes the act's value.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from rollout_lws.objects.resources import (
    ENDPOINT_SLICES,
    HORIZONTAL_POD_AUTOSCALERS,
    HTTP_ROUTES,
    INFERENCE_POOLS,
    INGRESSES,
    SERVICES,
    Resource,
)
from rollout_lws.sandbox.api_resources import GATEWAYS
from rollout_lws.sandbox.behaviours.network.gateway_status import REFUSE_ROUTES, SILENT
from rollout_lws.sandbox.patching.patches import merge_patch
from tests.scenarios import scaled
from tests.scenarios.judge import CANARY
from tests.scenarios.kinds import LWS, nested
from tests.scenarios.routed import GATEWAY, PROVIDERS, ROUTE, SERVICE, make, routing
from tests.scenarios.staged import Staged
from tests.scenarios.walk_plans import template
from tests.scenarios.world import KEYS, NAME, NAMESPACE

#: What a user changes of an object while it is borrowed, and wants to find there afterwards.
EDITS: dict[Resource, dict[str, Any]] = {
    SERVICES: {"sessionAffinity": "ClientIP"},
    HTTP_ROUTES: {"hostnames": ["chat.example.com"]},
    INFERENCE_POOLS: {"targetPorts": [{"number": 8001}]},
    INGRESSES: {"tls": [{"hosts": ["chat.example.com"]}]},
}
#: Ways to share requests by such objects alone.
SHARED_BY = tuple(each for each in PROVIDERS if {resource for resource, _ in each.hold_record} <= EDITS.keys())
#: What a Gateway's controller does besides its duty, by the annotations that say so to the sandbox's.
ROUTERS: dict[str, dict[str, str | None]] = {
    "well": {REFUSE_ROUTES: None, SILENT: None},
    "refuses": {REFUSE_ROUTES: "no room", SILENT: None},
    "silent": {REFUSE_ROUTES: None, SILENT: "true"},
}


@dataclass
class Others(Staged):
    """People and controllers that share objects with a release."""

    def _shared(self, number: int) -> tuple[Resource, str]:
        every = ((SERVICES, SERVICE), (HTTP_ROUTES, ROUTE), *self.plan.provider.hold_record)
        return every[number % len(every)]

    def edit_shared(self, number: int) -> None:
        resource, name = self._shared(number)
        edit = EDITS[resource]
        self.world.patch(resource, name, {"spec": edit, "metadata": {"annotations": {"team": "chat"}}})
        kept = self.lent.get(f"{resource.kind} {name}")
        if kept is not None:
            spec, labels, annotations = kept
            self.lent[f"{resource.kind} {name}"] = merge_patch(spec, edit), labels, {**annotations, "team": "chat"}

    def reapply_shared(self, number: int) -> None:
        """The user's manifest once more, whatever a release has made of it; recreated where it is gone."""
        resource, name = self._shared(number)
        spec, labels, annotations = self.lent.get(f"{resource.kind} {name}") or self.made[resource, name]
        live = self.world.get(resource, name)
        if live is None:
            make(self.world, resource, name, spec=copy.deepcopy(spec))
            meta = {"labels": labels or None, "annotations": annotations or None}
            self.world.patch(resource, name, {"metadata": meta})
        else:
            self.world.server.replace(resource, {**live, "spec": copy.deepcopy(spec)})

    def delete_shared(self, number: int) -> None:
        resource, name = self._shared(number)
        self.world.delete(resource, name)

    def delete_slices(self) -> None:
        for each in self.world.server.list(ENDPOINT_SLICES, NAMESPACE):
            self.world.delete(ENDPOINT_SLICES, each["metadata"]["name"])

    def router(self, does: str) -> None:
        self.world.patch(GATEWAYS, GATEWAY, {"metadata": {"annotations": ROUTERS[does]}})

    def route_by(self, seconds: int | None = None) -> None:
        """trafficRoutings with another patience, or none at all."""
        words = routing(self.plan.provider, gracePeriodSeconds=seconds, drainSeconds=5) if seconds is not None else None
        self.world.patch_rollout({"strategy": {self.plan.style.key: {"trafficRoutings": words}}})

    def autoscale(self, bounds: tuple[int, int]) -> None:
        """An autoscaler with these bounds, made where there is none."""
        low, high = bounds
        if self.world.get(HORIZONTAL_POD_AUTOSCALERS, scaled.AUTOSCALER) is None:
            scaled.create_autoscaler(self.world, low, high, of=self.world.kind.resource)
        else:
            scaled.edit(self.world, minReplicas=low, maxReplicas=high)

    def autoscale_rollout(self, bounds: tuple[int, int]) -> None:
        """The same of the Rollout."""
        low, high = bounds
        if self.world.get(HORIZONTAL_POD_AUTOSCALERS, scaled.AUTOSCALER) is None:
            scaled.create_autoscaler(self.world, max(low, self.plan.style.least), high, of=self.world.ROLLOUT)
        else:
            scaled.edit(self.world, minReplicas=max(low, self.plan.style.least), maxReplicas=high)

    def scale_rollout(self, groups: int) -> None:
        """As ``replicas`` does with the LWS."""
        scaled.scale(self.world, max(groups, self.plan.style.least) if groups else 0)

    def wants(self, groups: int) -> None:
        scaled.wants(self.world, max(groups, self.plan.style.least))

    def delete_autoscaler(self) -> None:
        if self.world.get(HORIZONTAL_POD_AUTOSCALERS, scaled.AUTOSCALER) is not None:
            self.world.delete(HORIZONTAL_POD_AUTOSCALERS, scaled.AUTOSCALER)

    def strategy(self, said: tuple[int | str, int | str]) -> None:
        surge, unavailable = said
        kind = self.world.kind
        update = {"maxUnavailable": unavailable} | ({"maxSurge": surge} if kind is LWS else {})
        self.world.patch_lws(nested(kind.strategy, update))
        self.judge.allow(unavailable)

    def scale_canary(self, groups: int) -> None:
        self.world.patch_lws({"replicas": groups}, CANARY)

    def edit_canary(self, version: str) -> None:
        self.world.patch_lws(self.world.kind.versioned(template(version, self.world.containers)), CANARY)

    def unmark_canary(self) -> None:
        kind = self.world.kind.resource
        live = self.world.server.get(kind, NAMESPACE, CANARY)
        ours = {key: None for key in live["metadata"].get("annotations") or {} if KEYS.owns(key)}
        self.world.patch(kind, CANARY, {"metadata": {"annotations": ours}})

    def set_clock(self, seconds: float) -> None:
        """The clocks of all machines are set forward."""
        self.world.ahead += seconds

    def wipe_status(self) -> None:
        status = self.world.status_of(NAME)
        self.world.patch(self.world.ROLLOUT, NAME, {"status": dict.fromkeys(status)}, "status")

    def take_finalizers(self) -> None:
        self.world.patch(self.world.ROLLOUT, NAME, {"metadata": {"finalizers": None}})

    def heal(self) -> None:
        super().heal()
        if not self.plan.routed:
            return
        with self.judge.user():
            self.router("well")
            # Steps that ask for a share are refused where nothing is named that could give it.
            if self.world.get(self.world.ROLLOUT, NAME) is not None:
                self.route_by(1)
            for number in range(2 + len(self.plan.provider.hold_record)):
                if self.world.get(*self._shared(number)) is None:
                    self.reapply_shared(number)

    def assert_clean(self, version: str) -> None:
        super().assert_clean(version)
        autoscaler = self.world.get(HORIZONTAL_POD_AUTOSCALERS, scaled.AUTOSCALER)
        marks = ((autoscaler or {}).get("metadata") or {}).get("annotations") or {}
        assert not [key for key in marks if KEYS.owns(key)], f"the autoscaler is not restored: {marks}"
