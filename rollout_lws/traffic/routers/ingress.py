"""Router for Ingresses: adds a canary Ingress and leaves the user's Ingress unchanged."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from rollout_lws.api.resources import Keys
from rollout_lws.objects.resources import INGRESSES, ObjectRef, Resource
from rollout_lws.objects.writes import Create, Write
from rollout_lws.traffic import marks
from rollout_lws.traffic.copies import copied, ingress
from rollout_lws.traffic.copies.ingress_classes import class_problem, served_by
from rollout_lws.traffic.copy_names import written_name
from rollout_lws.traffic.facts import RoutingFacts
from rollout_lws.traffic.registry import INGRESS
from rollout_lws.traffic.router import (
    Problem,
    RouteState,
    Written,
    deleted,
    does_not_exist,
    patched,
)
from rollout_lws.traffic.split import Object, Split


@dataclass(frozen=True)
class IngressRouter:
    """Adds a canary Ingress to the user's Ingress, which stays unchanged."""

    spec: ClassVar = INGRESS
    facts: RoutingFacts
    name: str

    @property
    def resource(self) -> Resource:
        return self.spec.resource

    @property
    def _canary_name(self) -> str:
        return written_name(self.spec, self.name)

    @property
    def _users(self) -> ObjectRef:
        return ObjectRef(INGRESSES.kind, self.name)

    @property
    def _main(self) -> Object | None:
        return self.facts.find(INGRESSES, self.name)

    @property
    def _live(self) -> Object | None:
        return copied.own(self.facts, self.spec, self.name)

    @property
    def _class_type(self) -> str:
        asked = self.facts.asked
        return asked.ingress.class_type if asked is not None and asked.ingress is not None else ""

    @cached_property
    def state(self) -> RouteState:
        """Controllers do not report when they have applied a change, so the grace period covers that. They need not
        know the new version's backend first: they take a canary up together with its backend, and send requests to the
        user's own until they know that.
        """
        main, live = self._main, self._live
        drifted = live is not None and ingress.drifted(live, self.facts.by, self.facts.keys)
        return RouteState(
            self._users,
            (Written(ObjectRef(INGRESSES.kind, self._canary_name), live, live is not None, drifted),),
            live is not None and ingress.reaches_new(live),
            ingress.weight(live) if live is not None else 0,
            carried=live is not None,
            missing="" if main else str(self._users),
            # The canary Ingress would still take its part of a path that now leads to another Service.
            cut_off=ingress.no_path(main, self.facts.names.service) if main else "",
        )

    def apply(self, split: Split, reason: str, *, checked: bool) -> tuple[Write, ...]:
        main, live = self._main, self._live
        if live is None and not checked:
            return ()
        wanted = main and ingress.canary_ingress(
            main,
            self.facts.keys,
            name=self._canary_name,
            service=self.facts.names.service,
            canary_service=self.facts.canary_service_name,
            split=split,
            owner=self.facts.owner,
        )
        if not wanted:
            return deleted(INGRESSES, live, reason) if live is not None else ()
        annotated = ingress.annotated(wanted, self.facts.by, self.facts.keys)
        if live is None:
            return (Create(INGRESSES, annotated, reason),)
        return patched(INGRESSES, live, ingress.updated(live, annotated), reason)

    @classmethod
    def restore(cls, live: Object, by: str, keys: Keys) -> Object:
        """The user's Ingress has none of our changes."""
        return marks.without(live, by, keys)

    def check(self, split: Split | None = None, *, begun: bool = False) -> Problem | None:  # noqa: ARG002 - ours is annotated
        class_type = self._class_type
        if split is not None:
            # Another controller may be declared in mid-release: it gets no further share.
            unsaid = class_problem(class_type) or ingress.split_problem(split, served_by(class_type))
            return Problem(unsaid, self._users) if unsaid else None
        main = self._main
        if main is None:
            return Problem(does_not_exist(self.facts, INGRESSES, self._users), self._users, "")
        every = self.facts.objects.get(INGRESSES, {})
        taken = copied.taken(self.facts, self.spec, self.name)
        if taken is not None:
            return taken
        service = self.facts.names.service
        found = ingress.ingress_problem(main, service, class_type)
        if found:
            return Problem(found, self._users)
        others = [each for name, each in sorted(every.items()) if name not in (self.name, self._canary_name)]
        served = served_by(class_type)
        rival = ingress.rival(main, service, others, served)
        if rival is None:
            return None
        ref = ObjectRef(INGRESSES.kind, rival["metadata"]["name"])
        path = f"to Service {service}" if served.by_service else f"of {self._users}"
        return Problem(
            f"{ref} is a canary for a path {path} already, and {served.controller} heeds only one: delete it for the"
            " time of releases",
            ref,
        )
