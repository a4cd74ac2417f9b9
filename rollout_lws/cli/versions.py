"""Stored versions of a Rollout, and edits of an LWS's templates as JSON Patches. Pure: objects in, patches out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rollout_lws.cli.sides import sides_of
from rollout_lws.errors import UsageError
from rollout_lws.targets.table import format_of_members

Object = dict[str, Any]
Operations = list[dict[str, Any]]
_RESTARTED = "kubectl.kubernetes.io/restartedAt"
ROLES = ("leader", "worker")


@dataclass(frozen=True, slots=True)
class Stored:
    """One version in a Rollout's history. ``number`` grows with each release; ``revision`` is LWS's name for it;
    ``rollback_reason`` is why its last release did not complete, "" when it did or is still in progress.
    """

    number: int
    template_hash: str
    revision: str
    created: str
    members: Object
    rollback_reason: str = ""

    @property
    def images(self) -> list[str]:
        """Images of all containers, the leader's first, without duplicates."""
        found = [each["image"] for _, each in containers(self.members) if each.get("image")]
        return list(dict.fromkeys(found))


def stored(records: Iterable[Object], group: str) -> list[Stored]:
    """The history from its ControllerRevisions, newest release first. Two records of one version exist while the
    controller stores it again; the later one counts.
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
    # A user may have removed the hash annotation; then every record counts.
    return [each for each in found if not each.template_hash or each is latest[each.template_hash]]


def _annotations(obj: Object) -> Mapping[str, Any]:
    found: Mapping[str, Any] = obj["metadata"].get("annotations") or {}
    return found


#: By the controller's rollback reason.
_LEFT = {"Aborted": "aborted", "Rollback": "taken back", "Continuous": "superseded"}


def role_of(each: Stored, rollout: Object) -> str:
    """What the version is to the Rollout now: stable, aborted, new, inactive; "" for none of these."""
    status = rollout.get("status") or {}
    if each.template_hash == (status.get("stable") or {}).get("templateHash"):
        return "stable"
    if each.template_hash == (status.get("aborted") or {}).get("templateHash"):
        return "aborted"
    if status.get("phase") == "Progressing" and each.template_hash == status.get("observedTemplateHash"):
        return "new"
    if sides_of(rollout) is not None and each.template_hash == status.get("inactiveHash"):
        return "inactive"
    return ""


def left_because(each: Stored) -> str:
    """Why the version's last release did not complete, in a word or two; "" when it did, or is on."""
    return _LEFT.get(each.rollback_reason, "")


def to_undo(history: Sequence[Stored], live: str, stable: str, number: int | None) -> Stored:
    """The version to restore: the one with ``number``; else, during a release, the stable one; else the previous one
    that was stable.

    ``live`` and ``stable`` are template hashes. UsageError when there is none, or the LWS already has it.
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
        raise UsageError(f"revision {found[0].number} is the version that the workload asks for already")
    return found[0]


def putting_back(lws: Object, members: Object) -> Operations:
    """JSON Patch that restores a stored version in ``lws``, provided that its spec is unchanged since it was read."""
    operations = _seen(lws)
    kind = format_of_members(lws["spec"])
    for name in kind.members:
        wanted = {key: value for key, value in (members.get(name) or {}).items() if key != "$patch"}
        if name == kind.holder:
            wanted = _as_it_is(wanted, lws["spec"].get(name) or {}, kind.unversioned)
        if wanted:
            operations.append({"op": "add", "path": f"/spec/{name}", "value": wanted})
        elif lws["spec"].get(name) is not None:
            operations.append({"op": "remove", "path": f"/spec/{name}"})
    return operations


def _as_it_is(wanted: Object, live: Object, members: Sequence[str]) -> Object:
    """``wanted`` with those members that are no part of a version as they are in ``live``."""
    kept = {key: live[key] for key in members if key in live}
    return {key: value for key, value in wanted.items() if key not in members} | kept


def restarting(lws: Object, now: str) -> Operations:
    """JSON Patch that creates a new version of ``lws`` which differs only in its restart time."""
    operations, paths = _seen(lws), dict(format_of_members(lws["spec"]).paths)
    for role, template in templates(lws["spec"]):
        meta = template.get("metadata") or {}
        annotations = {**(meta.get("annotations") or {}), _RESTARTED: now}
        value = {**meta, "annotations": annotations}
        operations.append({"op": "add", "path": f"/spec/{'/'.join(paths[role])}/metadata", "value": value})
    return operations


def annotating(lws: Object, key: str, value: str) -> Operations:
    """JSON Patch that annotates ``lws``, provided that its spec has not changed since it was read."""
    operations = _seen(lws)
    if lws["metadata"].get("annotations"):
        escaped = key.replace("~", "~0").replace("/", "~1")
        return [*operations, {"op": "add", "path": f"/metadata/annotations/{escaped}", "value": value}]
    return [*operations, {"op": "add", "path": "/metadata/annotations", "value": {key: value}}]


def setting_images(lws: Object, images: Mapping[str, str], role: str) -> tuple[Operations, list[str]]:
    """JSON Patch that sets images of containers of ``role`` (leader, worker or all), by name or ``*`` for all but init
    containers, and a description of the changes. UsageError for an unknown container.
    """
    operations, told, found = _seen(lws), [], set()
    has_roles = len(format_of_members(lws["spec"]).roles) > 1
    for of_role, place, each in placed_containers(lws["spec"]):
        name = str(each.get("name"))
        wanted = images.get(name) or (images.get("*") if "/containers/" in place else None)
        if wanted is None or role not in ("all", of_role):
            continue
        found.add(name if name in images else "*")
        if each.get("image") != wanted:
            operations.append({"op": "add", "path": f"/spec/{place}/image", "value": wanted})
            told.append(f"{of_role if has_roles else 'container'} {name}: {each.get('image')} -> {wanted}")
    missing = sorted(set(images) - found)
    if missing:
        of = "" if role == "all" else f" of the {role}"
        known = sorted({str(each.get("name")) for whose, each in containers(lws["spec"]) if role in ("all", whose)})
        raise UsageError(f"there is no container {missing[0]!r}{of} (known: {', '.join(known) or 'none'})")
    return operations, told


def templates(spec: Object) -> Iterator[tuple[str, Object]]:
    """Role and pod template for each that the spec has; without a leaderTemplate, LWS uses the worker's for leaders."""
    kind = format_of_members(spec)
    found = kind.held(spec)
    for role, member in kind.roles:
        if found.get(member):
            yield role, found[member]


def containers(spec: Object) -> Iterator[tuple[str, Object]]:
    """Each container, init containers included, with the role of its pods."""
    return ((role, each) for role, _, each in placed_containers(spec))


def placed_containers(spec: Object) -> Iterator[tuple[str, str, Object]]:
    """The same, with its JSON Pointer below the spec (no leading slash) before the container."""
    paths = dict(format_of_members(spec).paths)
    for role, template in templates(spec):
        for kind in ("containers", "initContainers"):
            for at, each in enumerate((template.get("spec") or {}).get(kind) or ()):
                yield role, f"{'/'.join(paths[role])}/spec/{kind}/{at}", each


def _seen(lws: Object) -> Operations:
    meta = lws["metadata"]
    return [{"op": "test", "path": f"/metadata/{name}", "value": meta[name]} for name in ("uid", "generation")]
