"""The chart rendered, and an installation of the command line in the words of its values."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from rollout_lws.cli.install.options import (
    GATE_JOBS,
    GUARD,
    NETWORK_POLICY,
    POD_DELETION_POLICY,
    POD_MONITOR,
    SERVICE_MONITOR,
    Installation,
)

Object = dict[str, Any]
CHART = Path(__file__).parents[2] / "charts" / "rollout-lws"
RELEASE = "canaries"
IMAGE = {"repository": "registry.example.com/rollout-lws"}


def rendered(values: Object, namespace: str = "rollout-lws-system") -> list[Object]:
    """The objects that Helm would apply."""
    import helm_python

    with helm_python.Chart.load(CHART) as chart:
        made = chart.render(values, name=RELEASE, namespace=namespace)
    texts = [text for path, text in made.items() if path.endswith(".yaml")]
    return [each for text in texts for each in yaml.safe_load_all(text) if each]


def named(values: Object, kind: str, name: str = "rollout-lws-controller") -> Object:
    (found,) = [each for each in rendered(values) if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return found


def values_of(chosen: Installation) -> Object:
    """What has to be set for the chart to install it, in the namespace ``chosen.namespace``."""
    image, _, digest = chosen.image.partition("@")
    repository, tag = re.fullmatch(r"(.+?)(?::([\w.-]+))?", image).groups()  # type: ignore[union-attr]
    return {
        "image": {"repository": repository, "tag": tag or "", "digest": digest},
        "replicas": chosen.replicas,
        "apiGroup": chosen.api_group,
        "watchNamespaces": list(chosen.watch_namespaces),
        "networkPolicy": {"enabled": NETWORK_POLICY in chosen.extras},
        "metrics": {
            "podMonitor": {"enabled": POD_MONITOR in chosen.extras},
            "serviceMonitor": {"enabled": SERVICE_MONITOR in chosen.extras},
        },
        "podDeletionPolicy": {"enabled": POD_DELETION_POLICY in chosen.extras},
        "gates": {"jobs": GATE_JOBS in chosen.extras},
        "notifications": {"secrets": list(chosen.notify), "clusterName": chosen.cluster_name},
        "customNetworks": {"scripts": chosen.custom_network_scripts, "kinds": list(chosen.custom_network_kinds)},
        "guard": {"enabled": GUARD in chosen.extras, "failurePolicy": chosen.guard_failure_policy},
    }


def without_helms_own(obj: Object) -> Object:
    """An object of the chart without the marks by which Helm knows what is its own."""
    metadata = obj["metadata"]
    labels = dict(metadata["labels"])
    assert labels.pop("app.kubernetes.io/managed-by") == "Helm"
    assert labels.pop("helm.sh/chart").startswith("rollout-lws-")
    if obj["kind"] == "CustomResourceDefinition":
        assert metadata["annotations"] == {"helm.sh/resource-policy": "keep"}
    kept = {key: value for key, value in metadata.items() if key != "annotations"}
    return {**obj, "metadata": {**kept, "labels": labels}}


def by_name(objects: list[Object]) -> dict[tuple[str, str, str], Object]:
    """By kind, namespace and name, each there once."""
    found = {(each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]): each for each in objects}
    assert len(found) == len(objects)
    return found
