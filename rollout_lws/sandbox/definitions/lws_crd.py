"""The LeaderWorkerSet CustomResourceDefinition, so that no network is needed.

Version 0.10 is the default; 0.8 lacks status.observedGeneration, 1.0 adds groupIdentity and groupReplacementPolicy.
"""

from __future__ import annotations

from typing import Any

from rollout_lws.sandbox.definitions.files import definitions

VERSIONS = ("0.8", "0.10", "1.0")

_ADDED_IN_1_0 = {
    "groupIdentity": {
        "type": "string",
        "enum": ["Ordinal", "Hash"],
        "default": "Ordinal",
        "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "groupIdentity is immutable"}],
    },
    "groupReplacementPolicy": {"type": "string", "enum": ["PostTermination", "Immediate"]},
}


def manifest(version: str = "0.10") -> dict[str, Any]:
    """The definition of LWS ``version``, one of VERSIONS."""
    if version not in VERSIONS:
        raise ValueError(f"no LeaderWorkerSet definition of version {version}: there are {', '.join(VERSIONS)}")
    (definition,) = definitions("leaderworkerset.yaml")
    members = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    if version == "0.8":
        del members["status"]["properties"]["observedGeneration"]
    elif version == "1.0":
        members["spec"]["properties"] |= _ADDED_IN_1_0
    return definition
