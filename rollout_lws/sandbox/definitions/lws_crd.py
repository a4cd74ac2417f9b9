"""The LeaderWorkerSet CustomResourceDefinition, so that no network is needed.

Version 0.10 is the default; 0.8 lacks status.observedGeneration; 1.0 adds what its proposals describe, and what the
controllers play depends on it.
"""

from __future__ import annotations

from typing import Any

from rollout_lws.sandbox.definitions.files import definitions

VERSIONS = ("0.8", "0.10", "1.0")

#: Source: LWS's KEPs 820, 898, 956 and 1064.
_ADDED_IN_1_0 = {
    "groupIdentity": {
        "type": "string",
        "enum": ["Ordinal", "Hash"],
        "default": "Ordinal",
        "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "groupIdentity is immutable"}],
    },
    "groupReplacementPolicy": {"type": "string", "enum": ["PostTermination", "Immediate"]},
    "podTerminationPolicy": {"type": "string", "enum": ["Default", "Parallel"]},
    # Workload-aware scheduling: what it has to do with other members is the scheduler's business.
    "scheduling": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}
_PLACEMENT = {
    "type": "object",
    "properties": {
        "type": {"type": "string", "enum": ["None", "ExclusiveTopology"], "default": "None"},
        "topology": {"type": "string"},
    },
}
_ADDED_TO_GROUPS = {
    "maxGroupRestarts": {"type": "integer", "format": "int32", "minimum": 0},
    "placementPolicy": _PLACEMENT,
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
        groups = members["spec"]["properties"]["leaderWorkerTemplate"]["properties"]
        groups |= _ADDED_TO_GROUPS
        groups["subGroupPolicy"]["properties"]["placementPolicy"] = _PLACEMENT
    return definition
