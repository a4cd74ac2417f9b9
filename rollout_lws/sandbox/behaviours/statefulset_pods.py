"""The objects that the StatefulSet controller creates for one ordinal: the pod and its volume claims."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rollout_lws.objects.released import POD_INDEX, POD_NAME, POD_REVISION
from rollout_lws.objects.resources import PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS
from rollout_lws.sandbox.behaviours.base import Object, labels_of, owner_reference

_ORDINAL = re.compile(r".*-([0-9]+)")


def ordinal_of(pod: Object) -> int:
    """The number at the end of the pod's name, -1 if there is none."""
    found = _ORDINAL.fullmatch(pod["metadata"]["name"])
    return int(found[1]) if found else -1


def revision_of(pod: Object) -> str:
    """The name of the pod's ControllerRevision."""
    return labels_of(pod).get(POD_REVISION, "")


def pod(stateful_set: Object, revision: Object, ordinal: int) -> dict[str, Any]:
    """The pod of ``ordinal`` from the template in ``revision``."""
    metadata, spec = stateful_set["metadata"], stateful_set["spec"]
    template = revision["data"]["spec"]["template"]
    given = template.get("metadata") or {}
    name = f"{metadata['name']}-{ordinal}"
    labels = {
        **(given.get("labels") or {}),
        POD_REVISION: revision["metadata"]["name"],
        POD_NAME: name,
        POD_INDEX: str(ordinal),
    }
    pod_spec = {**template["spec"], "hostname": name, "subdomain": spec.get("serviceName", "")}
    claims = spec.get("volumeClaimTemplates") or ()
    if claims:
        own = {claim["metadata"]["name"] for claim in claims}
        pod_spec["volumes"] = [
            *(volume for volume in pod_spec.get("volumes") or () if volume["name"] not in own),
            *(
                {"name": claim["metadata"]["name"], "persistentVolumeClaim": {"claimName": claim_name(claim, name)}}
                for claim in claims
            ),
        ]
    return {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "metadata": {
            **{key: given[key] for key in ("annotations", "finalizers") if given.get(key)},
            "name": name,
            "generateName": f"{metadata['name']}-",
            "namespace": metadata["namespace"],
            "labels": labels,
            "ownerReferences": [owner_reference(STATEFUL_SETS, stateful_set)],
        },
        "spec": pod_spec,
    }


def claim_name(claim: Mapping[str, Any], pod_name: str) -> str:
    return f"{claim['metadata']['name']}-{pod_name}"


def claim(stateful_set: Object, template: Mapping[str, Any], pod_name: str) -> dict[str, Any]:
    """The claim of one pod; the StatefulSet owns it if the retention policy deletes it with the StatefulSet."""
    metadata, spec = stateful_set["metadata"], stateful_set["spec"]
    given = template["metadata"]
    labels = {**(given.get("labels") or {}), **(spec["selector"].get("matchLabels") or {})}
    body: dict[str, Any] = {
        "apiVersion": PERSISTENT_VOLUME_CLAIMS.api_version,
        "kind": PERSISTENT_VOLUME_CLAIMS.kind,
        "metadata": {
            "name": claim_name(template, pod_name),
            "namespace": metadata["namespace"],
            "labels": labels,
            **({"annotations": given["annotations"]} if given.get("annotations") else {}),
        },
        "spec": template["spec"],
    }
    if (spec.get("persistentVolumeClaimRetentionPolicy") or {}).get("whenDeleted") == "Delete":
        owner = owner_reference(STATEFUL_SETS, stateful_set)
        body["metadata"]["ownerReferences"] = [{**owner, "blockOwnerDeletion": False}]
    return body
