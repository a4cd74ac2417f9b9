"""The sandbox's Gateway, HTTPRoute, GRPCRoute and InferencePool: it refuses what their published definitions refuse.

A definition that a user installs replaces these.
"""

from __future__ import annotations

from typing import Any

from rollout_lws.sandbox.api_resources import Served
from rollout_lws.sandbox.definitions import crds
from rollout_lws.sandbox.definitions.files import definitions


def manifests() -> list[dict[str, Any]]:
    """CustomResourceDefinitions of these kinds, for an API server that lacks them."""
    return definitions("gateway_api.yaml")


#: These kinds as a server serves them without installed definitions.
SERVED: tuple[Served, ...] = tuple(served for definition in manifests() for served in crds.served_by(definition))
