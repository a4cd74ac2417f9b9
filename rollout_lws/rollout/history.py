"""The versions that a Rollout remembers itself, each by our hash of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from msgspec.structs import replace as changed

from rollout_lws.api import rollouts
from rollout_lws.objects.resources import CONTROLLER_REVISIONS
from rollout_lws.objects.workloads import ControllerRevision
from rollout_lws.objects.writes import Create, Delete, Patch
from rollout_lws.release.record import owner_reference
from rollout_lws.rollout.draft import Draft
from rollout_lws.workload.revisions import history_body, lws_revision, recorded_version, surplus_history
from rollout_lws.workload.template import Version


def store_version(d: Draft, version: Version, revision: str) -> None:
    """Keep the version in the Rollout's own history, as the newest release of it."""
    meta = d.o.rollout.metadata
    newest = max((each.revision for each in d.o.history), default=0)
    stored = _stored(d, version.template_hash)
    if stored is not None:
        if stored.revision < newest:
            # The limit drops what was released longest ago, not what was first released longest ago.
            _patch(d, stored, {"revision": newest + 1}, "the version is released again")
        return
    resource = rollouts(d.keys.group)
    body = history_body(
        version,
        d.keys,
        rollout=meta.name,
        namespace=meta.namespace,
        owner=owner_reference(d.o.rollout, resource.kind, resource.api_version),
        number=newest + 1,
        revision=revision,
    )
    d.write((Create(CONTROLLER_REVISIONS, body, "to be able to go back to it"),))


def stable_version(d: Draft) -> Version | None:
    """The stable version as it was stored, or as LWS remembers it; None when neither does."""
    record = d.status.stable
    if record is None:
        return None
    known = _stored(d, record.template_hash) or lws_revision(d.stable, record.revision)
    return recorded_version(known) if known else None


def drop_surplus(d: Draft, stable_hash: str) -> None:
    """Forget what was released longest ago."""
    d.write(
        Delete(
            CONTROLLER_REVISIONS, old.metadata.namespace, old.metadata.name, old.metadata.uid, "more than ten versions"
        )
        for old in surplus_history(d.o.history, d.keys, stable_hash)
    )


def follow_hashes(d: Draft) -> None:
    """Call the versions on record by their hashes of today.

    Another release of this controller may know more that means the same, and so have hashed a version differently: it
    would be taken for one that nobody has seen, in the middle of its own release. The versions themselves are stored.
    """
    status = d.status
    known = {each.template_hash for each in (status.stable, status.aborted) if each} | {status.observed_template_hash}
    if d.version.template_hash in known:
        return
    today: dict[str | None, str] = {}
    history = list(d.o.history)
    for at, stored in enumerate(history):
        before, version = stored.metadata.annotations.get(d.keys.template_hash), recorded_version(stored)
        if before not in known or version is None or version.template_hash == before:
            continue
        today[before] = version.template_hash
        told = {d.keys.template_hash: version.template_hash}
        _patch(d, stored, {"metadata": {"annotations": told}}, "the version has another hash today")
        renamed = changed(stored.metadata, annotations={**stored.metadata.annotations, **told})
        history[at] = changed(stored, metadata=renamed)
    if not today:
        return
    # Whoever looks a version up in this very pass does so by its hash of today.
    d.o = replace(d.o, history=tuple(history))
    d.set(
        stable=_renamed(status.stable, today),
        aborted=_renamed(status.aborted, today),
        observed_template_hash=today.get(status.observed_template_hash, status.observed_template_hash),
    )


def _renamed(record: Any, today: Mapping[str | None, str]) -> Any:
    if record is None or record.template_hash not in today:
        return record
    return record.model_copy(update={"template_hash": today[record.template_hash]})


def _stored(d: Draft, template_hash: str) -> ControllerRevision | None:
    told = (each for each in d.o.history if each.metadata.annotations.get(d.keys.template_hash) == template_hash)
    return next(told, None)


def _patch(d: Draft, stored: ControllerRevision, body: Mapping[str, Any], reason: str) -> None:
    meta = stored.metadata
    d.write((Patch(CONTROLLER_REVISIONS, meta.namespace, meta.name, body, reason),))
