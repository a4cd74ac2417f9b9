"""The objects of an installation, in the order in which they can be applied, as pure functions of the options.

``templates/`` has the objects as YAML, one file for the controller and one for each extra that has objects, named as
the extra. The rules of roles come from ``rbac``, since the chart has them too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import deepcopy
from importlib.resources import files
from string import Template
from typing import Any

import yaml

from rollout_lws import __version__
from rollout_lws.api import crd
from rollout_lws.api.resources import keys
from rollout_lws.cli.install import rbac
from rollout_lws.cli.install.options import (
    DEFAULT_NAMESPACE,
    EXTRAS,
    GATE_JOBS,
    GUARD,
    Installation,
)
from rollout_lws.cli.install.rbac import CONTROLLER
from rollout_lws.objects.resources import (
    DEFAULT_API_GROUP,
    NAMESPACES,
    ROLES,
)
from rollout_lws.traffic.custom.scripts import FLAG

Object = dict[str, Any]
PART_OF = "app.kubernetes.io/part-of"
PRODUCT = "rollout-lws"
#: Labels of the controller's pods.
SELECTOR = {"app.kubernetes.io/name": PRODUCT, "app.kubernetes.io/component": "controller"}
HEALTH_PORT, METRICS_PORT, GUARD_PORT = 8081, 8080, 9443
#: Where Secrets of notifications are mounted.
NOTIFY = "/etc/rollout-lws/notify"
#: ClusterRole of a controller that watches some namespaces only, bound in each of them.
NAMESPACED = f"{CONTROLLER}-namespaced"


def objects(chosen: Installation) -> tuple[Object, ...]:
    """All objects with the product's labels; referenced objects come first.

    A Namespace is included only under our default name, so that deleting these objects never deletes a namespace that
    others may use.
    """
    own = [_own_namespace()] if chosen.namespace == DEFAULT_NAMESPACE else []
    return tuple(map(_labelled, (*own, *crd.render(chosen.api_group), *_controller(chosen))))


def home(chosen: Installation) -> Object:
    """The controller's namespace, for clusters where it does not exist."""
    own = chosen.namespace == DEFAULT_NAMESPACE
    return _labelled(_own_namespace() if own else NAMESPACES.manifest(chosen.namespace))


def arguments(chosen: Installation) -> list[str]:
    """Arguments of ``rollout-lws``, without those that equal the controller's defaults."""
    group = [] if chosen.api_group == DEFAULT_API_GROUP else [f"--api-group={chosen.api_group}"]
    watched = [f"--namespace={namespace}" for namespace in chosen.watch_namespaces]
    ports = [f"--health-probe-bind-address=:{HEALTH_PORT}", f"--metrics-bind-address=:{METRICS_PORT}"]
    guard = ["--guard", f"--guard-bind-address=:{GUARD_PORT}"] if GUARD in chosen.extras else []
    notify = [f"--notify={NOTIFY}/{secret}" for secret in chosen.notify]
    named = [f"--cluster-name={chosen.cluster_name}"] if chosen.cluster_name else []
    scripts = [f"{FLAG}={chosen.custom_network_scripts}"] if chosen.custom_network_scripts else []
    # Leader election even with one replica: two run during an upgrade.
    chosen_by_user = (*group, *watched, *ports, *guard, *notify, *named, *scripts)
    return ["controller", "--leader-elect", *chosen_by_user, "--log-format=json"]


def _controller(chosen: Installation) -> list[Object]:
    account, *bindings, budget, deployment = _read("controller", chosen)
    return [
        account,
        *_roles(chosen),
        *bindings,
        *(_read("scripts", chosen) if chosen.custom_network_scripts else ()),
        *(each for watched in chosen.watch_namespaces for each in _read("watched-namespace", chosen, watched)),
        *rbac.people_roles(chosen.api_group),
        budget,
        *(each for extra in EXTRAS if extra in chosen.extras and extra != GATE_JOBS for each in _read(extra, chosen)),
        _with_secrets(deployment, chosen.notify),
    ]


def _with_secrets(deployment: Object, secrets: Sequence[str]) -> Object:
    """The Deployment with the Secrets of notifications mounted, each in a directory of its name."""
    if not secrets:
        return deployment
    made = deepcopy(deployment)
    pod = made["spec"]["template"]["spec"]
    # Names of Secrets may be longer than those of volumes.
    pod["volumes"] = [{"name": f"notify-{n}", "secret": {"secretName": each}} for n, each in enumerate(secrets)]
    pod["containers"][0]["volumeMounts"] = [
        {"name": f"notify-{n}", "mountPath": f"{NOTIFY}/{each}", "readOnly": True} for n, each in enumerate(secrets)
    ]
    return made


def _roles(chosen: Installation) -> list[Object]:
    """The controller's roles.

    A ClusterRoleBinding binds the ClusterRole of its name; when only some namespaces are watched, that role has only
    the rules for cluster-scoped kinds, and RoleBindings bind a second one in each of these namespaces.
    """
    asked_for = rbac.gate_job_rules() if GATE_JOBS in chosen.extras else ()
    by_scripts = rbac.custom_network_rules(chosen.custom_network_kinds)
    everything = (*rbac.controller_rules(chosen.api_group), *asked_for, *by_scripts)
    cluster = [rbac.role(CONTROLLER, everything)]
    if chosen.watch_namespaces:
        cluster = [
            rbac.role(CONTROLLER, (rule for rule in everything if rule.cluster)),
            rbac.role(NAMESPACED, (rule for rule in everything if not rule.cluster)),
        ]
    if GUARD in chosen.extras:
        cluster.append(rbac.role(f"{CONTROLLER}-guard", rbac.guard_rules()))
    # For the Lease and the ConfigMap with scripts, in the controller's namespace only.
    own = {"leader-election": rbac.leader_election_rules()}
    if chosen.custom_network_scripts:
        own["scripts"] = rbac.script_rules(chosen.custom_network_scripts)
    return [
        *cluster,
        *(
            ROLES.manifest(f"{CONTROLLER}-{name}", chosen.namespace, rules=[rule.rendered() for rule in rules])
            for name, rules in own.items()
        ),
    ]


def _read(name: str, chosen: Installation, watched: str = "") -> list[Object]:
    """The objects of one file, for the watched namespace ``watched`` where the file is about one."""
    ports = {"health": HEALTH_PORT, "metrics": METRICS_PORT} | ({"guard": GUARD_PORT} if GUARD in chosen.extras else {})
    among = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": list(chosen.watch_namespaces)}
    text = (files(__package__) / "templates" / f"{name}.yaml").read_text()
    filled = Template(text).substitute(
        namespace=json.dumps(chosen.namespace),
        watched=json.dumps(watched),
        image=json.dumps(chosen.image),
        replicas=chosen.replicas,
        group=chosen.api_group,
        arguments=json.dumps(arguments(chosen)),
        ports=json.dumps([{"name": port, "containerPort": ports[port], "protocol": "TCP"} for port in ports]),
        open_ports=json.dumps([{"port": port, "protocol": "TCP"} for port in sorted(ports.values())]),
        original=keys(chosen.api_group).original,
        account=f"system:serviceaccount:{chosen.namespace}:{CONTROLLER}",
        failure_policy=chosen.guard_failure_policy,
        watched_selector=json.dumps({"matchExpressions": [among]} if chosen.watch_namespaces else {}),
    )
    # Through JSON, because YAML's anchors would be printed again as such.
    documents = yaml.load_all(filled, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return [each for read in json.loads(json.dumps([*documents])) for each in _items(read)]


def _items(read: Object) -> list[Object]:
    return list(read["items"]) if read["kind"] == "List" else [read]


def _own_namespace() -> Object:
    """Enforces the restricted pod security standard: only the controller runs there."""
    made = NAMESPACES.manifest(DEFAULT_NAMESPACE)
    made["metadata"]["labels"] = {"pod-security.kubernetes.io/enforce": "restricted"}
    return made


def _labelled(obj: Object) -> Object:
    metadata = obj["metadata"]
    ours = {"app.kubernetes.io/name": PRODUCT, PART_OF: PRODUCT, "app.kubernetes.io/version": __version__}
    return {**obj, "metadata": {**metadata, "labels": {**ours, **(metadata.get("labels") or {})}}}
