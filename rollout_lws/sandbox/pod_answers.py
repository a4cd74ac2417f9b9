"""What pods answer to requests through the API server's proxy, by annotations of theirs, each for one path::

    sandbox.rollouts.kruise.io/answers-warm-up: POST /v1/completions 200
    sandbox.rollouts.kruise.io/answers-evals: 'GET /evals 200 {"result": "Failed", "message": "3 of 40 are worse"}'

An answer is its method, path, status code and, if there is more, its body.
"""

from __future__ import annotations

import re

from rollout_lws.objects.resources import PODS
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.behaviours.base import annotations_of, running_and_ready
from rollout_lws.sandbox.routes import Behind, Response

PREFIX = "sandbox.rollouts.kruise.io/answers-"
_ANSWER = re.compile(r"(GET|POST) (/\S*) ([1-5][0-9]{2})(?: (.*))?", re.DOTALL)


def answer_of(server: ApiServer, asked: Behind) -> Response | None:
    """The answer of a pod that is ready; None where no annotation has one, or in another form."""
    pod = server.store.get(PODS, asked.namespace, asked.pod)
    if pod is None or not running_and_ready(pod):
        return None
    for name, text in annotations_of(pod).items():
        found = _ANSWER.fullmatch(text) if name.startswith(PREFIX) else None
        if found is not None and (found[1], found[2]) == (asked.method, asked.path):
            body = found[4] or ""
            kind = "application/json" if body.startswith("{") else "text/plain"
            return Response(int(found[3]), body.encode(), {"content-type": kind})
    return None
