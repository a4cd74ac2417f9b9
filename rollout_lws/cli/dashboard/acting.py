"""Carries out what a person asks for on the page, as the commands do it, and says what one may ask for."""

from __future__ import annotations

from typing import Any

from rollout_lws.cli.access.transport import Transport
from rollout_lws.cli.actions import action_rules
from rollout_lws.cli.actions.action_client import Looking, ask
from rollout_lws.cli.actions.command import judge_start
from rollout_lws.errors import ApiError, UsageError
from rollout_lws.objects.resources import Resource

Object = dict[str, Any]
_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
#: Of an address or a reason that a page sends.
_LONGEST = 1000


class Acting:
    """Requests about releases, with the user's own rights; ``read_only`` refuses all of them."""

    def __init__(self, transport: Transport, rollouts: Resource, *, read_only: bool) -> None:
        self._transport, self._rollouts, self._read_only = transport, rollouts, read_only

    def rights(self, namespace: str) -> Object:
        """Whether the user may act on Rollouts of a namespace: ``act`` is why not, "" where they may."""
        if self._read_only:
            return {"act": "this page is read-only: it was started with --read-only"}
        asked = {"group": self._rollouts.group, "resource": "rollouts", "subresource": "status", "verb": "patch"}
        if self._may(namespace, asked):
            return {"act": ""}
        return {
            "act": f"you may not patch rollouts/status in namespace {namespace}: ask an administrator for that right"
        }

    def _may(self, namespace: str, attributes: Object) -> bool:
        """Whether the API server would let the user; True where it cannot be asked, since it refuses later then."""
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {"namespace": namespace, **attributes}},
        }
        try:
            answer = self._transport.within(namespace).create(_REVIEWS, review)
        except ApiError:
            return True
        return bool((answer.get("status") or {}).get("allowed"))

    def act(self, namespace: str, name: str, asked: Object) -> str:
        """What came of a request that names its ``action``, and the ``release`` and ``step`` that the page shows.
        UsageError when it makes no sense, or when the release has moved on.
        """
        if self._read_only:
            raise UsageError("this page is read-only: it was started with --read-only")
        release, step = asked.get("release"), asked.get("step")
        if not isinstance(release, str) or not isinstance(step, int):
            raise UsageError("name the release and the step that the page shows")
        pinned = action_rules.at(_judge(asked), step, release)
        wanted: action_rules.Judge | Looking = pinned
        if asked.get("action") == "start":
            wanted = Looking(lambda transport, rollout: action_rules.at(judge_start(transport, rollout), step, release))
        reason = str(asked.get("reason") or "")[:_LONGEST] or None
        transport = self._transport.within(namespace)
        try:
            return ask(transport, self._rollouts, name, wanted, reason=reason)
        finally:
            transport.close()


def _judge(asked: Object) -> action_rules.Judge:
    """Who judges the action of this name; UsageError for one that there is not."""
    match asked.get("action"):
        case "approve":
            return action_rules.approve
        case "promote":
            return action_rules.promote_full
        case "pause":
            return action_rules.pause
        case "resume":
            return action_rules.resume
        case "abort":
            return action_rules.abort(force=asked.get("force") is True)
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
