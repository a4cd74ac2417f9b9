"""Plans of every style, in few words."""

from __future__ import annotations

from typing import Any

from rollout_lws.api import BlueGreenStrategy, CanaryStrategy, StyleStrategy

#: Rollout's words on traffic, with waits that can be told apart.
ROUTED = [{"service": "chat", "gracePeriodSeconds": 3, "drainSeconds": 30, "gateway": {"httpRouteName": "chat"}}]


def plan(style: str, *steps: Any, routed: bool = False, **members: Any) -> StyleStrategy:
    """A plan of ``style`` (ExtraWorkload, InPlace, Surge or BlueGreen). A step is its replicas, or a pair of replicas
    and traffic, or a mapping.
    """
    made = [_step(each) for each in steps]
    body = {"steps": made, **({"trafficRoutings": ROUTED} if routed else {}), **members}
    if style == "BlueGreen":
        return BlueGreenStrategy.model_validate(body)
    return CanaryStrategy.model_validate({"capacity": style, **body})


def _step(told: Any) -> dict[str, Any]:
    if isinstance(told, dict):
        return told
    replicas, traffic = told if isinstance(told, tuple) else (told, None)
    return {"replicas": replicas} | ({"traffic": traffic} if traffic is not None else {})
