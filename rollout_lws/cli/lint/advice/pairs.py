"""Routes of pairs: which of the two sides has the requests is written in them, by the controller at rest too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from rollout_lws.api import rollouts
from rollout_lws.cli.lint.file_snapshot import FileSnapshot
from rollout_lws.cli.lint.findings import Finding
from rollout_lws.cli.lint.manifests import Manifest
from rollout_lws.cli.lint.paths import Path, value_at
from rollout_lws.rollout.draft import Draft
from rollout_lws.traffic.registry import spec_of
from rollout_lws.traffic.routers.of_rollout import pair_routers
from rollout_lws.traffic.services import backends
from rollout_lws.traffic.split import Backends


@dataclass(frozen=True, slots=True)
class Route:
    """The manifest of a pair's route, with the first place of it that says where requests go."""

    manifest: Manifest
    place: Path

    def found(self, code: str, message: str) -> Finding:
        return self.manifest.found(code, self.place, message)


def advice(files: FileSnapshot) -> Iterator[Finding]:
    for rollout in files.of_kind(rollouts().kind):
        d = Draft.of(files.observed(rollout.manifest.name))
        route = route_of(d, files) if d.paired else None
        spec = spec_of(route.manifest.resource.kind) if route is not None else None
        if route is not None and spec is not None:
            members = ", ".join(f"/spec/{each}" for each in spec.members)
            yield route.found(
                "LWS407",
                f"{rollout.manifest.what_and_place} writes the weights of {route.manifest.what}, and keeps them between"
                " releases too: every apply of this manifest sends requests where it says until they are put back. Have"
                f" Argo CD or Flux ignore its weights, or {members} as a whole if a step has matches",
            )


def route_of(d: Draft, files: FileSnapshot) -> Route | None:
    """The first route that the Rollout of a pair names and the files have."""
    facts = d.o.routing
    for each in pair_routers(facts) if facts is not None else ():
        found = files.find(each.state.users.kind, each.state.users.name)
        if found is not None and facts is not None:
            return Route(found.manifest, _place(found.manifest, backends(facts.names)))
    return None


def _place(route: Manifest, both: Backends) -> Path:
    """The first weight of one of the two sides, else the reference to it, else the rules."""
    names = {both.stable.name, both.canary.name}
    places: list[Path] = [
        ("spec", "rules", number, "backendRefs", at)
        for number, rule in enumerate(route.body["spec"].get("rules") or ())
        for at, ref in enumerate(rule.get("backendRefs") or ())
        if ref.get("name") in names
    ]
    weights: Iterator[Path] = ((*place, "weight") for place in places)
    stated = (place for place in weights if value_at(route.body, place) is not None)
    return next(chain(stated, places), ("spec", "rules"))
