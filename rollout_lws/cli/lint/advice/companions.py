"""Pairs with companions: which of the workloads of a side its Service or InferencePool selects. Those of the other side
are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rollout_lws.cli.lint.advice.releases import Release, releases
from rollout_lws.cli.lint.file_snapshot import FileSnapshot, Shaped
from rollout_lws.cli.lint.findings import Finding
from rollout_lws.traffic import pools, services
from rollout_lws.traffic.registry import named_in
from rollout_lws.traffic.selectors import Selecting


def advice(files: FileSnapshot) -> Iterator[Finding]:
    for release in releases(files):
        if not release.rollout.spec.companions or not release.is_pair or release.routing is None:
            continue
        style = release.manifest.body["spec"]["strategy"][release.style[-1]]
        names, workloads = named_in(style["trafficRoutings"][0]), release.rollout.spec.workloads
        # Those of workloadRef's side and of the other one take turns.
        for at, pool, service in ((0, names.stable_pool, names.service), (1, names.canary_pool, names.canary_service)):
            side = workloads[at::2]
            if names.stable_pool:
                yield from _uncovered(files, release, side, pool)
            else:
                yield from _directly(files, release, side, service)


def _uncovered(files: FileSnapshot, release: Release, side: Sequence[str], pool: str | None) -> Iterator[Finding]:
    live = files.find(pools.SELECTING.resource.kind, pool) if pool else None
    if live is None:
        return
    selected = _selected(files, release, pools.SELECTING, live, side)
    for index, each in enumerate(release.rollout.spec.companions):
        member, name = ("name", each.name) if each.name in side else ("counterpart", each.counterpart)
        if files.pods_of(release.kind, name) and name not in selected:
            yield release.manifest.found(
                "LWS331",
                ("spec", "companions", index, member),
                f"{live.manifest.what} does not select groups of {release.kind.kind} {name}, so that its endpoint"
                f" picker sends them nothing: unless {side[0]} calls them by itself, have it select by a label that the"
                f" templates of {' and '.join(side)} have",
            )


def _directly(files: FileSnapshot, release: Release, side: Sequence[str], service: str | None) -> Iterator[Finding]:
    live = files.find(services.SELECTING.resource.kind, service) if service else None
    if live is None:
        return
    first, *others = side
    found = _selected(files, release, services.SELECTING, live, others)
    if found and _selected(files, release, services.SELECTING, live, [first]):
        named = " and ".join(found)
        yield live.manifest.found(
            "LWS332",
            services.SELECTING.path,
            f"{live.manifest.what} selects groups of {first} and of {named}, so that clients reach both alike: if"
            f" {named} only answers what {first} asks, add a label to the selector that {first}'s template alone has",
        )


def _selected(
    files: FileSnapshot, release: Release, selecting: Selecting, live: Shaped, names: Sequence[str]
) -> list[str]:
    """Those of these workloads of which it selects pods."""

    def selects(name: str) -> bool:
        return any(selecting.selects(live.body, each) for each in files.pods_of(release.kind, name))

    return [name for name in names if selects(name)]
