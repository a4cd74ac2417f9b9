"""The versions that a Rollout has stored, and edits of an LWS's templates: pure, objects in, patches out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rollout_lws.errors import UsageError

Object = dict[str, Any]
Operations = list[dict[str, Any]]
#: Members of an LWS's spec that make its version.
_MEMBERS = ("leaderWorkerTemplate", "networkConfig")
_RESTARTED = "kubectl.kubernetes.io/restartedAt"
ROLES = ("leader", "worker")


@dataclass(frozen=True, slots=True)
class Stored:
    """One version of a Rollout's history. ``number`` grows with each release; ``revision`` is LWS's name of it;
    ``rollback_reason`` is why its last release did not end with it, "" when it did, or is on.
    """

    number: int
    template_hash: str
    revision: str
    created: str
    members: Object
    rollback_reason: str = ""

    @property
    def images(self) -> list[str]:
        """Of all containers, leader's first, each once."""
        found = [each["image"] for _, each in containers(self.members) if each.get("image")]
        return list(dict.fromkeys(found))


def stored(records: Iterable[Object], group: str) -> list[Stored]:
    """The history out of its ControllerRevisions, the newest release first; of two records of one version, which are
    there while one is stored anew, the later one.
    """
    found = [
        Stored(
            int(each.get("revision") or 0),
            str(_annotations(each).get(f"{group}/template-hash") or ""),
            str(_annotations(each).get(f"{group}/revision") or ""),
            str(each["metadata"].get("creationTimestamp") or ""),
            (each.get("data") or {}).get("spec") or {},
            str(_annotations(each).get(f"{group}/rollback-reason") or ""),
        )
        for each in records
    ]
    found.sort(key=lambda each: (each.number, each.created), reverse=True)
    latest: dict[str, Stored] = {}
    for each in found:
        latest.setdefault(each.template_hash, each)
    # Somebody may have taken the annotation away: then each counts.
    return [each for each in found if not each.template_hash or each is latest[each.template_hash]]


def _annotations(obj: Object) -> Mapping[str, Any]:
    found: Mapping[str, Any] = obj["metadata"].get("annotations") or {}
    return found


def to_undo(history: Sequence[Stored], live: str, stable: str, number: int | None) -> Stored:
    """The version to go back to: the one with ``number``; else, in a release, the stable one; else the one before it
    that was stable.

    ``live`` and ``stable`` are template hashes. UsageError when there is none, or it is what the LWS asks for already.
    """
    if number is not None:
        found = [each for each in history if each.number == number]
        known = ", ".join(str(each.number) for each in history) or "none"
        if not found:
            raise UsageError(f"there is no revision {number} in the history (known: {known})")
    elif live != stable:
        found = [each for each in history if each.template_hash == stable]
        if not found:
            raise UsageError("the stable version is not in the history: apply its template")
    else:
        found = [each for each in history if each.template_hash != stable and not each.rollback_reason]
        if not found:
            raise UsageError("no other version of the history was ever stable: name one with --to-revision")
    if found[0].template_hash == live:
        raise UsageError(f"revision {found[0].number} is the version that the LeaderWorkerSet asks for already")
    return found[0]


def putting_back(lws: Object, members: Object) -> Operations:
    """The JSON Patch that gives ``lws`` a stored version, provided that its spec is as it was seen."""
    operations = _seen(lws)
    for name in _MEMBERS:
        wanted = {key: value for key, value in (members.get(name) or {}).items() if key != "$patch"}
        if wanted:
            operations.append({"op": "add", "path": f"/spec/{name}", "value": wanted})
        elif lws["spec"].get(name) is not None:
            operations.append({"op": "remove", "path": f"/spec/{name}"})
    return operations


def restarting(lws: Object, now: str) -> Operations:
    """The JSON Patch that makes a version of ``lws`` which differs by the moment of its restart only."""
    operations = _seen(lws)
    for role, template in templates(lws["spec"]):
        meta = template.get("metadata") or {}
        annotations = {**(meta.get("annotations") or {}), _RESTARTED: now}
        value = {**meta, "annotations": annotations}
        operations.append({"op": "add", "path": f"/spec/leaderWorkerTemplate/{role}Template/metadata", "value": value})
    return operations


def annotating(lws: Object, key: str, value: str) -> Operations:
    """The JSON Patch that gives ``lws`` an annotation, provided that its spec is as it was seen."""
    operations = _seen(lws)
    if lws["metadata"].get("annotations"):
        escaped = key.replace("~", "~0").replace("/", "~1")
        return [*operations, {"op": "add", "path": f"/metadata/annotations/{escaped}", "value": value}]
    return [*operations, {"op": "add", "path": "/metadata/annotations", "value": {key: value}}]


def setting_images(lws: Object, images: Mapping[str, str], role: str) -> tuple[Operations, list[str]]:
    """The JSON Patch that gives containers of ``role`` (leader, worker or all) their images, by name or ``*`` for all
    but init containers, and what it changes in words. UsageError for a container that is not there.
    """
    operations, told, found = _seen(lws), [], set()
    for place, each in containers(lws["spec"]):
        name = str(each.get("name"))
        wanted = images.get(name) or (images.get("*") if "/containers/" in place else None)
        if wanted is None or role not in ("all", _role_of(place)):
            continue
        found.add(name if name in images else "*")
        if each.get("image") != wanted:
            operations.append({"op": "add", "path": f"/spec/{place}/image", "value": wanted})
            told.append(f"{_role_of(place)} {name}: {each.get('image')} -> {wanted}")
    missing = sorted(set(images) - found)
    if missing:
        of = "" if role == "all" else f" of the {role}"
        known = sorted(
            {str(each.get("name")) for place, each in containers(lws["spec"]) if role in ("all", _role_of(place))}
        )
        raise UsageError(f"there is no container {missing[0]!r}{of} (known: {', '.join(known) or 'none'})")
    return operations, told


def templates(spec: Object) -> Iterator[tuple[str, Object]]:
    """Role and pod template of each that the LWS has; without a leaderTemplate leaders are made of the worker's."""
    found = spec.get("leaderWorkerTemplate") or {}
    for role in ROLES:
        if found.get(f"{role}Template"):
            yield role, found[f"{role}Template"]


def containers(spec: Object) -> Iterator[tuple[str, Object]]:
    """JSON Pointer below the spec, without its first slash, and container; init containers included."""
    for role, template in templates(spec):
        for kind in ("containers", "initContainers"):
            for at, each in enumerate((template.get("spec") or {}).get(kind) or ()):
                yield f"leaderWorkerTemplate/{role}Template/spec/{kind}/{at}", each


def _role_of(place: str) -> str:
    return place.split("/")[1].removesuffix("Template")


def _seen(lws: Object) -> Operations:
    meta = lws["metadata"]
    return [{"op": "test", "path": f"/metadata/{name}", "value": meta[name]} for name in ("uid", "generation")]
