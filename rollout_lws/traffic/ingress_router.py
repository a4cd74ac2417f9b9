"""A second Ingress beside the user's as a router; the user's stays as it is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from rollout_lws.api.resources import Keys
from rollout_lws.objects.resources import INGRESSES, ObjectRef, Resource
from rollout_lws.objects.writes import Create, Write
from rollout_lws.traffic import ingress, marks
from rollout_lws.traffic.facts import RoutingFacts
from rollout_lws.traffic.registry import INGRESS
from rollout_lws.traffic.router import Problem, deleted, does_not_exist, patched, written_name
from rollout_lws.traffic.split import Object, Split


@dataclass(frozen=True, slots=True)
class IngressRouter:
    """A second Ingress beside the user's, which stays as it is."""

    spec: ClassVar = INGRESS
    facts: RoutingFacts
    name: str

    @staticmethod
    def restore(live: Object, by: str, keys: Keys) -> Object:
        """Nothing of ours is in the user's own."""
        return marks.without(live, by, keys)

    @property
    def resource(self) -> Resource:
        return INGRESSES

    @property
    def ref(self) -> ObjectRef:
        return ObjectRef(INGRESSES.kind, self.canary_name)

    @property
    def ignore(self) -> str:
        return "let it leave that Ingress alone, which the release has made"

    @property
    def canary_name(self) -> str:
        return written_name(self.spec, self.name)

    @property
    def _class_type(self) -> str:
        asked = self.facts.asked
        return asked.ingress.class_type if asked is not None and asked.ingress is not None else ""

    @property
    def main(self) -> Object | None:
        return self.facts.find(INGRESSES, self.name)

    @property
    def live(self) -> Object | None:
        found = self.facts.find(INGRESSES, self.canary_name)
        return found if found is not None and self.facts.is_ours(found) else None

    @property
    def missing(self) -> str:
        return "" if self.main else f"Ingress {self.name}"

    @property
    def taken(self) -> str:
        if self.canary_name not in self.facts.objects.get(INGRESSES, {}) or self.given:
            return ""
        return (
            f"{self.ref} exists and is not ours, but the new version's needs its name: delete it, or make it anew"
            " under another name"
        )

    @property
    def cut_off(self) -> str:
        """The second Ingress would go on taking its part of a path that now leads to another Service."""
        main = self.main
        return ingress.no_path(main, self.facts.names.service) if main else ""

    @property
    def given(self) -> bool:
        return self.live is not None

    @property
    def reaches_new(self) -> bool:
        live = self.live
        return live is not None and ingress.reaches_new(live)

    @property
    def weight(self) -> int:
        live = self.live
        return ingress.weight(live) if live is not None else 0

    @property
    def written_over(self) -> bool:
        live = self.live
        return live is not None and ingress.drifted(live, self.facts.by, self.facts.keys)

    @property
    def unaccepted(self) -> str:
        """Nothing says when ingress-nginx has taken up a change: the grace period has to do."""
        return ""

    @property
    def nobody_accepts(self) -> str:
        return ""

    def writes(self, split: Split, reason: str, *, checked: bool) -> tuple[Write, ...]:
        main, live = self.main, self.live
        if live is None and not checked:
            return ()
        wanted = main and ingress.canary_ingress(
            main,
            self.facts.keys,
            name=self.canary_name,
            service=self.facts.names.service,
            canary_service=self.facts.canary_service_name,
            split=split,
            owner=self.facts.owner,
        )
        if not wanted:
            return deleted(INGRESSES, live, reason) if live is not None else ()
        noted = ingress.noted(wanted, self.facts.by, self.facts.keys)
        if live is None:
            return (Create(INGRESSES, noted, reason),)
        return patched(INGRESSES, live, ingress.updated(live, noted), reason)

    def inexpressible(self, split: Split) -> str:
        return ingress.split_problem(split)

    def problem(self, splits: Iterable[Split], *, begun: bool = False) -> Problem | None:  # noqa: ARG002 - ours has a note
        main, users = self.main, ObjectRef(INGRESSES.kind, self.name)
        if main is None:
            return Problem(does_not_exist(self.facts, INGRESSES, users), users)
        if self.taken:
            return Problem(self.taken, self.ref)
        every = self.facts.objects.get(INGRESSES, {})
        others = [each for name, each in sorted(every.items()) if name not in (self.name, self.canary_name)]
        service = self.facts.names.service
        said = (ingress.ingress_problem(main, service, self._class_type, split) for split in splits)
        found = next(filter(None, said), "")
        if found:
            return Problem(found, users)
        rival = ingress.rival(main, service, others)
        if rival is None:
            return None
        return Problem(
            f"Ingress {rival['metadata']['name']} is a canary for a path of {users} already, and ingress-nginx heeds"
            " only one: delete it for the time of releases",
            ObjectRef(INGRESSES.kind, rival["metadata"]["name"]),
        )
