"""What comes along with real manifests: roles, claims, and kinds of which a cluster has no definition."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rollout_lws.cli.sandbox.local_cluster import playground
from rollout_lws.objects.resources import DEFAULT_API_GROUP
from rollout_lws.sandbox.behaviours.cluster import Options
from tests.kubectl_tool import Kubectl

pytestmark = pytest.mark.kubectl


@pytest.fixture
async def kubectl(tmp_path: Path) -> AsyncIterator[Kubectl]:
    async with playground(Options(), DEFAULT_API_GROUP) as cluster:
        cluster.write_kubeconfig(tmp_path / "kubeconfig")
        yield Kubectl(tmp_path / "kubeconfig", tmp_path)


async def test_roles_and_their_bindings_are_kept(kubectl: Kubectl) -> None:
    group = "rbac.authorization.k8s.io"
    named = {"apiVersion": f"{group}/v1", "metadata": {"name": "reader"}}
    role = {**named, "kind": "Role", "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}
    binding = {**named, "kind": "RoleBinding", "roleRef": {"apiGroup": group, "kind": "Role", "name": "reader"}}
    for manifest in (role, binding):
        assert "created" in await kubectl.run("apply", "-f", "-", stdin=manifest)
        assert "unchanged" in await kubectl.run("apply", "-f", "-", stdin=manifest)
    assert "clusterroles" in await kubectl.run("api-resources", f"--api-group={group}", "--namespaced=false")


async def test_a_kind_without_a_definition_is_refused_in_kubectls_own_words(kubectl: Kubectl) -> None:
    manifest = {
        "apiVersion": "disaggregatedset.x-k8s.io/v1",
        "kind": "DisaggregatedSetRoleScaler",
        "metadata": {"name": "pd"},
    }
    refusal = await kubectl.run("apply", "-f", "-", stdin=manifest, code=1)
    assert 'no matches for kind "DisaggregatedSetRoleScaler" in version "disaggregatedset.x-k8s.io/v1"' in refusal
    assert "ensure CRDs are installed first" in refusal
