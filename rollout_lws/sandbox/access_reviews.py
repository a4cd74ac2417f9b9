"""SelfSubjectAccessReviews: whether the user may do something, which is everything but what a fault forbids."""

from __future__ import annotations

from rollout_lws.objects.resources import SELF_SUBJECT_ACCESS_REVIEWS
from rollout_lws.sandbox import codec
from rollout_lws.sandbox.faults import Faults
from rollout_lws.sandbox.routes import Request, Response

_PATH = SELF_SUBJECT_ACCESS_REVIEWS.path()


def is_review(request: Request) -> bool:
    return (request.method, request.path) == ("POST", _PATH)


def review(request: Request, faults: Faults) -> Response:
    """The answer, which is not stored."""
    asked = codec.body_of(request)
    attributes = (asked.get("spec") or {}).get("resourceAttributes") or {}
    refused = faults.forbids(str(attributes.get("verb") or ""), str(attributes.get("resource") or ""))
    return codec.answer({**asked, "status": {"allowed": not refused}}, 201)
