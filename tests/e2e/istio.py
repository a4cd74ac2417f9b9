"""The definitions of Istio's kinds, as its project publishes them. Istio itself does not run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from rollout_lws.objects.resources import DESTINATION_RULES, VIRTUAL_SERVICES
from tests.e2e import tools

_KINDS = {each.kind for each in (DESTINATION_RULES, VIRTUAL_SERVICES)}


def missing() -> str:
    """Why the definitions are not here and how to get them, in one line; empty when they are."""
    return tools.missing(tools.ISTIO)


def definitions() -> Iterator[dict[str, Any]]:
    """Those of the kinds that a release writes."""
    published = (tools.directory(tools.ISTIO) / "istio.yaml").read_text()
    for body in yaml.load_all(published, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        if body and body["spec"]["names"]["kind"] in _KINDS:
            yield body
