"""Definitions of kinds that an API server is given, and serves from then on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from rollout_lws.kube.client import Client
from rollout_lws.objects.resources import CUSTOM_RESOURCE_DEFINITIONS
from rollout_lws.objects.writes import Create
from tests.e2e.waiting import condition, until


async def define(admin: Client, definitions: Iterable[dict[str, Any]], why: str) -> None:
    """Create the CustomResourceDefinitions, and wait until all are established."""
    bodies = [*definitions]
    for body in bodies:
        await admin.send(Create(CUSTOM_RESOURCE_DEFINITIONS, body, why))
    await asyncio.gather(*(_established(admin, body["metadata"]["name"]) for body in bodies))


async def _established(admin: Client, name: str) -> None:
    await until(admin, CUSTOM_RESOURCE_DEFINITIONS, "", name, lambda obj: condition(obj, "Established") == "True")
