"""What the chart renders: what the command line prints, by the values; valid for Kubernetes; refused when unclear."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from rollout_lws import __version__
from rollout_lws.cli.install.manifests import objects
from rollout_lws.cli.install.options import EXTRAS, Installation
from tests.chart.rendering import CHART, IMAGE, by_name, named, rendered, values_of, without_helms_own

pytestmark = pytest.mark.helm

Object = dict[str, Any]
NAME = "registry.example.com/rollout-lws"
KINDS = ("meshroutes.mesh.example.com", "ingresses.networking.k8s.io")
INSTALLATIONS = {
    "as it comes": Installation(f"{NAME}:0.1.0"),
    "a digest": Installation(f"{NAME}@sha256:{'a' * 64}"),
    "a tag and a digest": Installation(f"localhost:5000/team/rollout-lws:v1@sha256:{'a' * 64}"),
    "not started": Installation(f"{NAME}:0.1.0", replicas=0),
    "three": Installation(f"{NAME}:0.1.0", replicas=3),
    "elsewhere": Installation(f"{NAME}:0.1.0", "123"),
    "some namespaces": Installation(f"{NAME}:0.1.0", "tools", watch_namespaces=("team-a", "456", "tools")),
    "another group": Installation(f"{NAME}:0.1.0", api_group="rollouts.example.com"),
    **{extra: Installation(f"{NAME}:0.1.0", extras=(extra,)) for extra in EXTRAS},
    "a guard that fails closed": Installation(f"{NAME}:0.1.0", extras=("guard",), guard_failure_policy="Fail"),
    "notifications": Installation(f"{NAME}:0.1.0", notify=("slack", "hook.example.com"), cluster_name="prod.eu"),
    "custom networks": Installation(f"{NAME}:0.1.0", custom_network_scripts="scripts", custom_network_kinds=KINDS),
    "everything": Installation(
        *(f"{NAME}:0.1.0", "tools", 5, ("team-a",), "rollouts.example.com", EXTRAS, "Fail", ("slack",), "prod"),
        *("rollout-lws.scripts", KINDS),
    ),
}


@pytest.mark.parametrize("chosen", INSTALLATIONS.values(), ids=INSTALLATIONS)
def test_it_renders_what_the_command_line_prints(chosen: Installation) -> None:
    made = by_name([without_helms_own(each) for each in rendered(values_of(chosen), chosen.namespace)])
    printed = by_name([each for each in objects(chosen) if each["kind"] != "Namespace"])
    assert made.keys() == printed.keys()
    for key, each in printed.items():
        assert made[key] == each


def test_without_a_tag_it_is_the_image_of_this_version() -> None:
    assert container({})["image"] == f"{NAME}:{__version__}"


def container(values: Object) -> Object:
    found: Object = pod(values)["containers"][0]
    return found


def pod(values: Object) -> Object:
    found: Object = named({"image": IMAGE, **values}, "Deployment")["spec"]["template"]["spec"]
    return found


@pytest.mark.parametrize("strict", [False, True])
def test_helm_finds_nothing_to_complain_of(strict: bool) -> None:
    import helm_python

    report = helm_python.lint(CHART, strict=strict)
    assert report["errors"] == []
    assert [each["error"] for each in report["messages"]] == ["icon is recommended"]


def test_what_is_packed_renders_the_same(tmp_path: Path) -> None:
    import helm_python

    packed = helm_python.package(CHART, destination=tmp_path)
    assert Path(packed).name == f"rollout-lws-{__version__}.tgz"
    values = values_of(INSTALLATIONS["everything"])
    with helm_python.Chart.load(packed) as packed_chart, helm_python.Chart.load(CHART) as chart:
        assert {each["name"] for each in packed_chart.files} == {".helmignore", "README.md"}
        assert packed_chart.render(values, namespace="tools") == chart.render(values, namespace="tools")


#: A node, a group of nodes, and so on: what is handed on as it is.
TOLERATION = {"key": "infra", "operator": "Exists"}
AFFINITY = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}}
PEER = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
POLICY = {"enabled": True, "egress": {"enabled": True, "apiServer": {"cidrs": ["10.0.0.1/32"], "ports": [16443]}}}
MONITORS = ("podMonitor", "serviceMonitor")
MONITOR = {"enabled": True, "interval": "15s", "labels": {"prometheus": "infra"}}

Look = Callable[[Object], object]
#: Values, where to look, and what is to be there.
KNOBS: dict[str, tuple[Object, Look, object]] = {
    "pull policy": ({"image": {**IMAGE, "pullPolicy": "Always"}}, lambda v: container(v)["imagePullPolicy"], "Always"),
    "pull secrets": (
        {"imagePullSecrets": [{"name": "registry"}]},
        lambda v: pod(v)["imagePullSecrets"],
        [{"name": "registry"}],
    ),
    "workers": ({"controller": {"workers": 16}}, lambda v: "--workers=16" in container(v)["args"], True),
    "log format": ({"controller": {"logFormat": "text"}}, lambda v: container(v)["args"][-1], "--log-format=text"),
    "arguments": (
        {"controller": {"extraArgs": ["--request-timeout=10s"]}},
        lambda v: container(v)["args"][-1],
        "--request-timeout=10s",
    ),
    "environment": (
        {"controller": {"extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}]}},
        lambda v: [each["name"] for each in container(v)["env"]],
        ["PYTHONDONTWRITEBYTECODE", "HTTPS_PROXY"],
    ),
    "resources": (
        {"resources": {"limits": {"memory": "2Gi"}}},
        lambda v: container(v)["resources"],
        {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "2Gi"}},
    ),
    "nodes": (
        {"nodeSelector": {"pool": "infra"}},
        lambda v: pod(v)["nodeSelector"],
        {"kubernetes.io/os": "linux", "pool": "infra"},
    ),
    "tolerations": ({"tolerations": [TOLERATION]}, lambda v: pod(v)["tolerations"], [TOLERATION]),
    "affinity": ({"affinity": AFFINITY}, lambda v: pod(v)["affinity"], AFFINITY),
    "spread": ({"topologySpreadConstraints": [SPREAD]}, lambda v: pod(v)["topologySpreadConstraints"], [SPREAD]),
    "priority": ({"priorityClassName": "infra"}, lambda v: pod(v)["priorityClassName"], "infra"),
    "grace": ({"terminationGracePeriodSeconds": 90}, lambda v: pod(v)["terminationGracePeriodSeconds"], 90),
    "a user by the cluster": (
        {"podSecurityContext": {"runAsUser": None, "runAsGroup": None}},
        lambda v: pod(v)["securityContext"],
        {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    ),
    "a security context": (
        {"securityContext": {"seLinuxOptions": {"type": "container_t"}}},
        lambda v: container(v)["securityContext"]["seLinuxOptions"],
        {"type": "container_t"},
    ),
    "pod labels": (
        {"podLabels": {"team": "infra"}},
        lambda v: labels_of(named(v, "Deployment")["spec"]["template"]),
        {"app.kubernetes.io/name": "rollout-lws", "app.kubernetes.io/component": "controller", "team": "infra"},
    ),
    "pod annotations": (
        {"podAnnotations": {"linkerd.io/inject": "disabled"}},
        lambda v: named(v, "Deployment")["spec"]["template"]["metadata"]["annotations"],
        {"linkerd.io/inject": "disabled"},
    ),
    "annotations": (
        {"deploymentAnnotations": {"owner": "ann"}},
        lambda v: named(v, "Deployment")["metadata"]["annotations"],
        {"owner": "ann"},
    ),
    "annotations of the account": (
        {"serviceAccount": {"annotations": {"owner": "ann"}}},
        lambda v: named(v, "ServiceAccount")["metadata"]["annotations"],
        {"owner": "ann"},
    ),
    "labels of all": (
        {"commonLabels": {"team": "infra"}, "networkPolicy": {"enabled": True}},
        lambda v: {labels_of(each).get("team") for each in rendered(v)},
        {"infra"},
    ),
    "rights of the guard by others": (
        {"rbac": {"create": False, "people": False}, "guard": {"enabled": True}},
        lambda v: {"ClusterRole", "ClusterRoleBinding", "Service"} & kinds(v),
        {"Service"},
    ),
    "definitions by others": ({"crds": {"install": False}}, lambda v: "CustomResourceDefinition" in kinds(v), False),
    "definitions that go": (
        {"crds": {"keep": False}},
        lambda v: [each for each in rendered(v) if "annotations" in each["metadata"]],
        [],
    ),
    "rights by others": (
        {"rbac": {"create": False, "people": False}},
        lambda v: {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"} & kinds(v),
        set(),
    ),
    "people by others": (
        {"rbac": {"people": False}},
        lambda v: [each["metadata"]["name"] for each in rendered(v) if each["kind"] == "ClusterRole"],
        ["rollout-lws-controller"],
    ),
    "the account by others": ({"serviceAccount": {"create": False}}, lambda v: "ServiceAccount" in kinds(v), False),
    "no budget": ({"podDisruptionBudget": {"enabled": False}}, lambda v: "PodDisruptionBudget" in kinds(v), False),
    "a wider budget": (
        {"podDisruptionBudget": {"maxUnavailable": "50%"}},
        lambda v: named(v, "PodDisruptionBudget")["spec"]["maxUnavailable"],
        "50%",
    ),
    "who reads metrics": (
        {"networkPolicy": {"enabled": True, "metricsFrom": [PEER]}},
        lambda v: named(v, "NetworkPolicy")["spec"]["ingress"],
        [
            {"ports": [{"port": 8080, "protocol": "TCP"}], "from": [PEER]},
            {"ports": [{"port": 8081, "protocol": "TCP"}]},
        ],
    ),
    "whom it reaches": (
        {"networkPolicy": POLICY},
        lambda v: named(v, "NetworkPolicy")["spec"]["egress"],
        [
            {"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]},
            {"ports": [{"port": 16443, "protocol": "TCP"}], "to": [{"ipBlock": {"cidr": "10.0.0.1/32"}}]},
        ],
    ),
    "how often pods are asked": (
        {"metrics": {"podMonitor": MONITOR}},
        lambda v: monitor(v, "PodMonitor", "podMetricsEndpoints"),
        ("15s", "infra"),
    ),
    "how often the service is asked": (
        {"metrics": {"serviceMonitor": MONITOR}},
        lambda v: monitor(v, "ServiceMonitor", "endpoints"),
        ("15s", "infra"),
    ),
}


#: What a value that is set to null, or to an empty one, leaves of the rules for what goes out.
OPEN_PORTS = [{"port": 443, "protocol": "TCP"}, {"port": 6443, "protocol": "TCP"}]


@pytest.mark.parametrize("egress", [None, {}, {"enabled": None}, {"apiServer": None}])
def test_without_a_word_about_it_what_goes_out_is_not_limited(egress: Object | None) -> None:
    spec = named({"image": IMAGE, "networkPolicy": {"enabled": True, "egress": egress}}, "NetworkPolicy")["spec"]
    assert (spec["policyTypes"], "egress" in spec) == (["Ingress"], False)


@pytest.mark.parametrize("server", [None, {}, {"ports": None, "cidrs": None}])
def test_ports_that_are_left_out_are_the_usual_ones(server: Object | None) -> None:
    policy = {"enabled": True, "egress": {"enabled": True, "apiServer": server, "extra": None}}
    _, rule = named({"image": IMAGE, "networkPolicy": policy}, "NetworkPolicy")["spec"]["egress"]
    assert rule == {"ports": OPEN_PORTS}


@pytest.mark.parametrize("flag", ["--request-timeout=10s", "--leader-elect-lease-duration=30s"])
def test_flags_that_no_right_follows_can_be_given(flag: str) -> None:
    assert container({"controller": {"extraArgs": [flag]}})["args"][-1] == flag


def labels_of(obj: Object) -> Object:
    found: Object = obj["metadata"]["labels"]
    return found


def kinds(values: Object) -> set[str]:
    return {each["kind"] for each in rendered(values)}


def monitor(values: Object, kind: str, endpoints: str) -> tuple[str, str]:
    found = named(values, kind)
    return found["spec"][endpoints][0]["interval"], labels_of(found)["prometheus"]


@pytest.mark.parametrize("knob", KNOBS)
def test_a_value_does_what_it_says(knob: str) -> None:
    values, look, wanted = KNOBS[knob]
    assert look({"image": IMAGE, **values}) == wanted
    usual = {
        "image": IMAGE,
        "networkPolicy": {"enabled": True},
        "metrics": {key: {"enabled": True} for key in MONITORS},
    }
    with suppress(KeyError):
        assert look(usual) != wanted


def known(obj: Object, minor: str) -> None:
    """Raise for a field that Kubernetes of this version does not have; monitors are not Kubernetes' own."""
    import kubernetes_validate

    foreign = obj["apiVersion"].startswith("monitoring.coreos.com/")
    newer = obj["kind"].startswith("ValidatingAdmissionPolicy") and minor == "1.28"
    if not foreign and not newer:
        kubernetes_validate.validate(obj, minor, strict=True)


@pytest.mark.parametrize("minor", ["1.28", "1.30", "1.37"])
def test_kubernetes_knows_every_field_of_every_object(minor: str) -> None:
    for each in rendered(values_of(INSTALLATIONS["everything"])):
        known(each, minor)


@pytest.mark.parametrize("knob", KNOBS)
def test_kubernetes_knows_every_field_that_a_value_brings(knob: str) -> None:
    values = {"image": IMAGE, **KNOBS[knob][0]}
    for each in rendered(values):
        if each["kind"] in ("Deployment", "PodDisruptionBudget", "NetworkPolicy", "ServiceAccount"):
            known(each, "1.28")


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"image": {}}, "image.repository is missing: name the image, such as --set image.repository="),
        ({"image": {"repository": "A b"}}, "at '/image/repository': 'A b' does not match pattern"),
        ({"image": {"repo": "llama"}}, "at '/image': additional properties 'repo' not allowed"),
        ({"replica": 3}, "additional properties 'replica' not allowed"),
        ({"replicas": "two"}, "at '/replicas': got string, want integer"),
        ({"replicas": -1}, "at '/replicas': minimum: got -1, want 0"),
        ({"apiGroup": "rollouts"}, "at '/apiGroup': 'rollouts' does not match pattern"),
        ({"watchNamespaces": ["a_b"]}, "at '/watchNamespaces/0': 'a_b' does not match pattern"),
        ({"watchNamespaces": ["a", "a"]}, "at '/watchNamespaces': items at 0 and 1 are equal"),
        ({"controller": {"workers": 0}}, "at '/controller/workers': minimum: got 0, want 1"),
        ({"controller": {"logFormat": "xml"}}, "at '/controller/logFormat': value must be one of 'json', 'text'"),
        ({"podLabels": {"app.kubernetes.io/name": "x"}}, "invalid propertyName 'app.kubernetes.io/name'"),
        ({"podDisruptionBudget": {"maxUnavailable": 0}}, "at '/podDisruptionBudget/maxUnavailable': minimum: got 0"),
        ({"podDisruptionBudget": {"maxUnavailable": "0%"}}, "at '/podDisruptionBudget/maxUnavailable': '0%' does not"),
        ({"podDisruptionBudget": {"maxUnavailable": "101%"}}, "'101%' does not match pattern"),
        *(
            ({"controller": {"extraArgs": [flag]}}, "at '/controller/extraArgs/0': 'not' failed")
            for flag in (
                "--api-group=rollouts.example.com",
                "--namespace=team-a",
                "--leader-elect",
                "--leader-elect=false",
                "--leader-elect-resource-name=other",
                "--leader-elect-resource-namespace=other",
                "--health-probe-bind-address=0",
                "--metrics-bind-address=:9090",
                "--guard",
                "--guard-bind-address=:9443",
                "--notify=/tmp/hook",
                "--cluster-name=prod",
                "--custom-network-scripts=scripts",
            )
        ),
        (
            {"replicas": 0, "guard": {"enabled": True, "failurePolicy": "Fail"}},
            "guard.failurePolicy Fail with replicas 0: no guard would answer, and every edit would be refused",
        ),
        ({"notifications": {"secrets": ["a/b"]}}, "at '/notifications/secrets/0': 'a/b' does not match pattern"),
        ({"notifications": {"secrets": ["a", "a"]}}, "at '/notifications/secrets': items at 0 and 1 are equal"),
        ({"notifications": {"clusterName": "a b"}}, "at '/notifications/clusterName': 'a b' does not match pattern"),
        ({"customNetworks": {"scripts": "a/b"}}, "at '/customNetworks/scripts': 'a/b' does not match pattern"),
        ({"customNetworks": {"kinds": ["MeshRoute"]}}, "at '/customNetworks/kinds/0': 'MeshRoute' does not match"),
        (
            {"customNetworks": {"kinds": ["meshroutes.mesh.example.com"]}},
            "customNetworks.kinds without customNetworks.scripts: no script would change them",
        ),
        ({"metrics": {"podMonitor": {"interval": "often"}}}, "at '/metrics/podMonitor/interval': 'often' does not"),
    ],
)
def test_what_makes_no_sense_is_refused(values: Object, told: str) -> None:
    import helm_python

    with pytest.raises(helm_python.HelmError) as refused:
        rendered({"image": IMAGE, **values})
    assert told in str(refused.value)


def documented() -> list[str]:
    """What the documentation sets, command by command."""
    text = (CHART.parents[1] / "docs" / "install.md").read_text()
    commands = re.findall(r"^helm (?:install|upgrade) (?:.*\\\n)*.*$", text, re.MULTILINE)
    return [",".join(re.findall(r"--set (\S+)", command)) for command in commands] + re.findall(
        r"`--set ([^`\s]+)`", text
    )


def test_the_values_for_production_render() -> None:
    text = (CHART.parents[1] / "docs" / "install.md").read_text()
    (block,) = re.findall(r"```yaml\n(.*?)```", text.partition("## For production")[2].partition("\n## ")[0], re.DOTALL)
    kinds = {each["kind"] for each in rendered(yaml.safe_load(block))}
    assert {"PodMonitor", "MutatingWebhookConfiguration", "ValidatingAdmissionPolicy", "NetworkPolicy"} <= kinds


def test_the_documentation_sets_what_there_is() -> None:
    import helm_python

    given = [helm_python.parse_set_string(each) for each in documented()]
    assert len(given) > 3
    for values in given:
        rendered({**values, "image": {**IMAGE, **values.get("image", {})}})


def test_the_documentation_tells_a_value_for_each_flag_that_there_is() -> None:
    text = (CHART.parents[1] / "docs" / "install.md").read_text()
    rows = re.findall(r"^\| (`-.*?) \| (.*) \|$", text, re.MULTILINE)
    told = {flag for flags, _ in rows for flag in re.findall(r"`(-[\w -]+)`", flags)}
    assert told >= {f"--with {extra}" for extra in EXTRAS} | {"--image", "-n", "--replicas", "--api-group"}
    chart = yaml.safe_load((CHART / "values.yaml").read_text())
    for path in {path for _, values in rows for path in re.findall(r"`([a-z]\w+[\w.]*)`", values)}:
        value = chart
        for key in path.split("."):
            assert key in value, path
            value = value[key]
