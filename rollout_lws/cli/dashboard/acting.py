"""Carries out what a person asks for on the page, as the commands do it, and says what one may ask for."""

from __future__ import annotations

from typing import Any

from rollout_lws.cli.access.transport import Transport
from rollout_lws.cli.actions import action_rules, edit_client
from rollout_lws.cli.actions.action_client import Looking, ask
from rollout_lws.cli.actions.command import judge_start
from rollout_lws.cli.rollouts import fetch_rollout
from rollout_lws.cli.sides import edited, released_kind
from rollout_lws.errors import ApiError, UsageError
from rollout_lws.objects.resources import SELF_SUBJECT_ACCESS_REVIEWS, Resource

Object = dict[str, Any]
#: Of a reason that a page sends.
_LONGEST = 1000
READ_ONLY = "this page is read-only: it was started with --read-only"


class Acting:
    """Requests about releases, with the user's own rights; ``read_only`` refuses all of them."""

    def __init__(self, transport: Transport, rollouts: Resource, *, read_only: bool) -> None:
        self._transport, self._rollouts, self._read_only = transport, rollouts, read_only

    def rights(self, namespace: str, name: str) -> Object:
        """Why the user may not ask for an action on this Rollout (``act``), and not edit its workload (``undo``); ""
        where they may.
        """
        if self._read_only:
            return {"act": READ_ONLY, "undo": READ_ONLY}
        with self._transport.within(namespace) as transport:
            rollout = fetch_rollout(transport, self._rollouts, name)
            return {
                "act": _why_not(transport, self._rollouts, name, "status"),
                "undo": _why_not(transport, released_kind(rollout), edited(rollout)),
            }

    def act(self, namespace: str, name: str, asked: Object) -> str:
        """What came of a request that names its ``action``, and the ``release`` and ``step`` that the page shows.
        UsageError when it makes no sense, or when the release has moved on. The page forces
        nothing: only the command line does.
        """
        if self._read_only:
            raise ApiError(403, "Forbidden", READ_ONLY)
        release, step = asked.get("release"), _number(asked, "step")
        if not isinstance(release, str) or step is None:
            raise UsageError("name the release and the step that the page shows")
        with self._transport.within(namespace) as transport:
            if asked.get("action") == "undo":
                return self._undo(transport, name, asked, step, release)
            wanted: action_rules.Judge | Looking = action_rules.at(_judge(asked), step, release)
            if asked.get("action") == "start":
                wanted = Looking(lambda there, rollout: action_rules.at(judge_start(there, rollout), step, release))
            return ask(transport, self._rollouts, name, wanted, reason=_reason(asked))

    def _undo(self, transport: Transport, name: str, asked: Object, step: int, release: str) -> str:
        """The page gets all that is done as one text."""
        told: list[str] = []
        pin = action_rules.at(lambda _: action_rules.Already(""), step, release)
        done = edit_client.undo(
            transport,
            self._rollouts,
            name,
            number=_number(asked, "revision"),
            pin=pin,
            reason=_reason(asked),
            tell=told.append,
        )
        return "; ".join([*told, done])


def _why_not(transport: Transport, resource: Resource, name: str, subresource: str = "") -> str:
    """Why the user may not patch this object; "" where they may, and where the API server cannot be asked, since it
    refuses later then. A role may be about single objects, so the review names it.
    """
    attributes = {"namespace": transport.namespace, "name": name, "verb": "patch", "resource": resource.plural}
    attributes |= {"group": resource.group} | ({"subresource": subresource} if subresource else {})
    kind = SELF_SUBJECT_ACCESS_REVIEWS
    review = {"apiVersion": kind.api_version, "kind": kind.kind, "spec": {"resourceAttributes": attributes}}
    try:
        answer = transport.create(kind.path(), review)
    except ApiError:
        return ""
    if (answer.get("status") or {}).get("allowed"):
        return ""
    what = f"{resource}/{subresource}" if subresource else str(resource)
    return (
        f"you may not patch {what} {name} in namespace {transport.namespace}: ask an administrator for that permission"
    )


def _judge(asked: Object) -> action_rules.Judge:
    """Who judges the action of this name; UsageError for one that there is not."""
    match asked.get("action"):
        case "approve":
            return action_rules.approve
        case "promote":
            return action_rules.promote_full
        case "jump":
            step = _number(asked, "toStep")
            if step is None:
                raise UsageError("name the step to go to")
            return action_rules.jump_to(step)
        case "pause":
            return action_rules.pause
        case "resume":
            return action_rules.resume
        case "abort":
            return action_rules.abort()
        case "retry":
            return action_rules.retry
        case "start":
            return action_rules.start("")
        case "home":
            return action_rules.home
        case "skip":
            return action_rules.skip(str(asked.get("gate") or ""))
        case other:
            raise UsageError(f"there is no action {other!r}")


def _reason(asked: Object) -> str | None:
    return str(asked.get("reason") or "")[:_LONGEST] or None


def _number(asked: Object, name: str) -> int | None:
    found = asked.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) else None
