"""Names that are too long for the names and labels derived from them."""

from __future__ import annotations

from collections.abc import Iterator

from rollout_lws.capacity.table import strategy_of_plan
from rollout_lws.cli.lint.advice.releases import releases
from rollout_lws.cli.lint.file_snapshot import FileSnapshot, Shaped, workload
from rollout_lws.cli.lint.findings import Finding
from rollout_lws.objects.resources import LEADER_WORKER_SETS, SERVICES
from rollout_lws.targets.target import Target
from rollout_lws.traffic.services import canary_service_name
from rollout_lws.workload.canary import NAME_BUDGET, canary_name

#: Longest label value, and the length that a StatefulSet's revision label adds to its name.
_LABEL, _HASH = 63, 11


def advice(files: FileSnapshot) -> Iterator[Finding]:
    for each in files.of_kind(LEADER_WORKER_SETS.kind):
        yield from _workers(each, workload(each))
    for release in releases(files):
        lws = files.find(LEADER_WORKER_SETS.kind, release.rollout.spec.workload_ref.name)
        if lws is not None and not strategy_of_plan(release.plan).one_workload:
            yield from _cut(lws, canary_name(workload(lws)))
        service = files.find(SERVICES.kind, release.routing.service) if release.routing else None
        if service is not None:
            yield from _cut(service, canary_service_name(service.manifest.name))


def _workers(each: Shaped, lws: Target) -> Iterator[Finding]:
    name = lws.metadata.name
    if len(name) <= NAME_BUDGET or lws.version.size < 2:
        return
    room = _LABEL - _HASH - len(name) - 1
    highest = f"only its first {10**room} groups get workers" if room > 0 else "none of its groups gets workers"
    yield each.manifest.found(
        "LWS307",
        ("metadata", "name"),
        f"the name has {len(name)} characters, and a label of every worker is made of it, its group's number and a"
        f" hash, {_LABEL} in all at most: {highest}. Use a name of at most {NAME_BUDGET}",
    )


def _cut(each: Shaped, copy: str) -> Iterator[Finding]:
    name = each.manifest.name
    if copy != f"{name}-canary":
        yield each.manifest.found(
            "LWS403",
            ("metadata", "name"),
            f"{name}-canary would be too long a name, so the new version's {each.manifest.resource.kind} is called"
            f" {copy}",
        )
