"""Rollouts and their workloads among the files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rollout_lws.api import Rollout, StyleStrategy, TrafficRouting, rollouts
from rollout_lws.cli.lint.file_snapshot import FileSnapshot
from rollout_lws.cli.lint.manifests import Manifest
from rollout_lws.cli.lint.paths import Path
from rollout_lws.objects.resources import Resource
from rollout_lws.targets.table import released_type
from rollout_lws.targets.target import Target


@dataclass(frozen=True, slots=True)
class Release:
    """A Rollout with a strategy, and its workload if it is among the files; of a pair that of workloadRef, and
    ``other`` that of counterpartRef, and ``companions`` those of both sides. ``kind`` is that of all of them.
    """

    manifest: Manifest
    rollout: Rollout
    plan: StyleStrategy
    kind: Resource
    lws: Target | None
    other: Target | None = None
    companions: tuple[Target, ...] = ()

    @property
    def is_pair(self) -> bool:
        return self.rollout.spec.counterpart_ref is not None

    @property
    def deletes_groups(self) -> bool:
        """Whether the controller deletes groups of its workloads, as with touch RouteOnly it never does."""
        return not self.is_pair or self.rollout.spec.scales_sides

    @property
    def workloads(self) -> tuple[str, ...]:
        """Names of the workloads that it shares requests between."""
        spec = self.rollout.spec
        refs = (spec.workload_ref, spec.counterpart_ref)
        return tuple(ref.name for ref in refs if ref is not None)

    @property
    def members(self) -> tuple[Target, ...]:
        """Those that are among the files."""
        return tuple(each for each in (self.lws, self.other) if each is not None)

    @property
    def replicas(self) -> int:
        """Groups of the stable version, 0 where the files do not say it: the manifests of a pair that its Rollout
        scales state none.
        """
        spec = self.rollout.spec
        if spec.replicas is not None or spec.scales_sides:
            return spec.replicas or 0
        return self.lws.replicas if self.lws is not None else 0

    @property
    def routing(self) -> TrafficRouting | None:
        return self.plan.traffic_routings[0] if self.plan.traffic_routings else None

    @property
    def style(self) -> Path:
        """Path of the strategy's canary or blueGreen section."""
        return ("spec", "strategy", "canary" if self.rollout.spec.strategy.canary else "blueGreen")


def releases(files: FileSnapshot) -> Iterator[Release]:
    """All Rollouts with exactly one style."""
    for each in files.of_kind(rollouts().kind):
        rollout = Rollout.model_validate(each.body)
        strategy = rollout.spec.strategy
        if strategy.style is not None and (strategy.canary is None or strategy.blue_green is None):
            kind = released_type(each.body["spec"]["workloadRef"]).resource
            lws = files.snapshot.workload(kind, rollout.spec.workload_ref.name)
            other = rollout.spec.counterpart_ref
            beside = files.snapshot.workload(kind, other.name) if other is not None else None
            names = (name for one in rollout.spec.companions for name in (one.name, one.counterpart))
            found = (files.snapshot.workload(kind, name) for name in names)
            companions = tuple(each for each in found if each is not None)
            yield Release(each.manifest, rollout, strategy.style, kind, lws, beside, companions)
