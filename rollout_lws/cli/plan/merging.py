"""A pod template of a built-in type as it would be stored: the API server fills in what a manifest does not state.

Without that, a manifest that changes nothing would look like another version.
"""

from __future__ import annotations

from typing import Any

from rollout_lws.objects.quantities import canonical

#: Members that the API server fills in, with the value that it gives them; ``_ANY`` is one that depends on others.
_ANY: Any = object()
_DEFAULTS: dict[str, Any] = {
    "apiVersion": "v1",
    "creationTimestamp": None,
    "defaultMode": 420,
    "divisor": "0",
    "dnsPolicy": "ClusterFirst",
    "failureThreshold": 3,
    "imagePullPolicy": _ANY,
    "optional": False,
    "periodSeconds": 10,
    "protocol": "TCP",
    "requests": _ANY,
    "resources": {},
    "restartPolicy": "Always",
    "schedulerName": "default-scheduler",
    "scheme": "HTTP",
    "securityContext": {},
    "serviceAccount": _ANY,
    "successThreshold": 1,
    "terminationGracePeriodSeconds": 30,
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "timeoutSeconds": 1,
    "type": "",
}
#: Members that tell the items of a list apart, the first that an item has.
_KEYS = ("name", "containerPort", "key", "mountPath")
_QUANTITIES = frozenset({"limits", "requests", "sizeLimit"})


def merged(stated: Any, live: Any, member: str = "") -> Any:
    """What is ``stated``, with those unstated members of ``live`` that have the API server's own values. ``member`` is
    the one that they are.
    """
    if isinstance(stated, dict) and isinstance(live, dict):
        filled = {
            name: value for name, value in live.items() if name not in stated and _is_filled_in(name, value, stated)
        }
        return {name: merged(value, live.get(name), _within(member, name)) for name, value in stated.items()} | filled
    if isinstance(stated, list) and isinstance(live, list):
        known = {_key(item, at): item for at, item in enumerate(live)}
        return [merged(item, known.get(_key(item, at)), member) for at, item in enumerate(stated)]
    return _canonical(stated) if member in _QUANTITIES else stated


def _within(member: str, name: str) -> str:
    """Members of a list of quantities are quantities, whatever they are called."""
    return member if member in _QUANTITIES else name


def _is_filled_in(name: str, value: Any, stated: dict[str, Any]) -> bool:
    if name == "requests":
        # Those that are not stated are the limits.
        return bool(_canonical_all(value) == _canonical_all(stated.get("limits")))
    default = _DEFAULTS.get(name, _ANY)
    return name in _DEFAULTS and (default is _ANY or default == value)


def _key(item: Any, at: int) -> Any:
    known = item if isinstance(item, dict) else {}
    return next(((name, known[name]) for name in _KEYS if name in known), at)


def _canonical_all(amounts: Any) -> Any:
    known = amounts if isinstance(amounts, dict) else {}
    return {name: _canonical(value) for name, value in known.items()}


def _canonical(value: Any) -> Any:
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        return value
    try:
        return canonical(str(value))
    except ValueError:
        return value
