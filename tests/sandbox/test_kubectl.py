"""Real kubectl against the sandbox over HTTP: what a person does in the first hour."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from rollout_lws.objects.resources import LEADER_WORKER_SETS, NAMESPACES, PODS, STATEFUL_SETS
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.http import Server
from tests import kubectl_tool
from tests.sandbox.conftest import config_map, lws, pod

pytestmark = pytest.mark.kubectl


class Kubectl(kubectl_tool.Kubectl):
    """kubectl, and the server in this process that it talks to."""

    def __init__(self, server: ApiServer, home: Path) -> None:
        super().__init__(home / "config", home)
        self.server = server


@pytest.fixture
async def kubectl(lws_server: ApiServer, tmp_path: Path) -> AsyncIterator[Kubectl]:
    lws_server.clock = time.time
    served = Server(lws_server)
    await served.start()
    (tmp_path / "config").write_text(yaml.safe_dump(served.kubeconfig()))
    yield Kubectl(lws_server, tmp_path)
    await served.stop()


MANIFEST = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", **lws()}


def with_image(image: str) -> dict[str, object]:
    container = {"name": "main", "image": image}
    group = {"size": 2, "workerTemplate": {"spec": {"containers": [container]}}}
    return {**MANIFEST, "spec": {"leaderWorkerTemplate": group}}


def image(server: ApiServer) -> str:
    spec = server.get(LEADER_WORKER_SETS, "default", "demo")["spec"]
    return str(spec["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"][0]["image"])


async def test_a_namespace_is_created_though_kubectl_sends_protobuf(kubectl: Kubectl) -> None:
    assert "created" in await kubectl.run("create", "namespace", "team")
    assert kubectl.server.get(NAMESPACES, "", "team")["status"] == {"phase": "Active"}
    refusal = await kubectl.run("create", "configmap", "a", "--from-literal=a=b", code=1)
    assert "reads JSON and YAML, not protobuf" in refusal
    assert "deleted" in await kubectl.run("delete", "namespace", "team")


async def test_apply_creates_changes_and_leaves_alone(kubectl: Kubectl) -> None:
    assert "created" in await kubectl.run("apply", "-f", "-", stdin=with_image("m:1"))
    assert "unchanged" in await kubectl.run("apply", "-f", "-", stdin=with_image("m:1"))
    difference = await kubectl.run("diff", "-f", "-", stdin=with_image("m:2"), code=1)
    assert "+        - image: m:2" in difference
    assert image(kubectl.server) == "m:1"
    assert "configured" in await kubectl.run("apply", "-f", "-", stdin=with_image("m:2"))
    assert image(kubectl.server) == "m:2"
    await kubectl.run("apply", "--server-side", "-f", "-", stdin=with_image("m:3"))
    assert image(kubectl.server) == "m:3"


async def test_server_side_apply_reports_conflicts(kubectl: Kubectl) -> None:
    await kubectl.run("apply", "--server-side", "--field-manager=one", "-f", "-", stdin=with_image("m:1"))
    apply = ("apply", "--server-side", "--field-manager=two", "-f", "-")
    assert 'conflict with "one"' in await kubectl.run(*apply, stdin=with_image("m:2"), code=1)
    await kubectl.run(*apply, "--force-conflicts", stdin=with_image("m:2"))
    assert image(kubectl.server) == "m:2"


async def test_a_misspelt_field_is_refused(kubectl: Kubectl) -> None:
    wrong = {**MANIFEST, "spec": {"replicaz": 2, **MANIFEST["spec"]}}
    assert 'unknown field "spec.replicaz"' in await kubectl.run("apply", "-f", "-", stdin=wrong, code=1)


async def test_get_shows_the_columns_of_each_kind(kubectl: Kubectl) -> None:
    kubectl.server.create(LEADER_WORKER_SETS, lws(replicas=3))
    status = {"readyReplicas": 1, "updatedReplicas": 2}
    kubectl.server.patch(LEADER_WORKER_SETS, "default", "demo", {"status": status}, subresource="status")
    kubectl.server.create(PODS, pod(labels={"app": "a"}))
    rows = (await kubectl.run("get", "lws")).splitlines()
    assert rows[0].split() == ["NAME", "READY", "DESIRED", "UP-TO-DATE", "AGE"]
    assert rows[1].split()[:4] == ["demo", "1", "3", "2"]
    rows = (await kubectl.run("get", "pods", "-l", "app=a", "-o", "wide")).splitlines()
    assert rows[1].split()[:4] == ["web-0", "0/1", "Pending", "0"]
    assert "No resources found" in await kubectl.run("get", "pods", "-l", "app=b")
    assert "web-0" in await kubectl.run("describe", "pod", "web-0")
    assert "Ready Replicas:" in await kubectl.run("describe", "lws", "demo")


async def test_discovery_and_explain_know_the_custom_kind(kubectl: Kubectl) -> None:
    assert "leaderworkersets" in await kubectl.run("api-resources", "--api-group=leaderworkerset.x-k8s.io")
    explained = await kubectl.run("explain", "lws.spec.leaderWorkerTemplate.size")
    assert "Pods of a group, its leader included." in explained


async def test_patch_label_annotate_and_scale_write(kubectl: Kubectl) -> None:
    kubectl.server.create(LEADER_WORKER_SETS, lws())
    await kubectl.run("patch", "lws", "demo", "--type=merge", "-p", '{"spec":{"startupPolicy":"LeaderReady"}}')
    operations = '[{"op":"replace","path":"/spec/leaderWorkerTemplate/size","value":4}]'
    await kubectl.run("patch", "lws", "demo", "--type=json", "-p", operations)
    status = '{"status":{"replicas":7},"spec":{"replicas":7}}'
    await kubectl.run("patch", "lws", "demo", "--subresource=status", "--type=merge", "-p", status)
    await kubectl.run("label", "lws", "demo", "team=a")
    await kubectl.run("annotate", "lws", "demo", "note=b")
    await kubectl.run("scale", "lws/demo", "--replicas=5")
    made = kubectl.server.get(LEADER_WORKER_SETS, "default", "demo")
    assert (made["metadata"]["labels"], made["metadata"]["annotations"]) == ({"team": "a"}, {"note": "b"})
    assert (made["spec"]["replicas"], made["status"]["replicas"]) == (5, 7)
    assert (made["spec"]["startupPolicy"], made["spec"]["leaderWorkerTemplate"]["size"]) == ("LeaderReady", 4)


async def test_edit_stores_what_the_editor_wrote(kubectl: Kubectl) -> None:
    kubectl.server.create(LEADER_WORKER_SETS, lws())
    await kubectl.run("edit", "lws", "demo", KUBE_EDITOR="sed -i 's/model:1/model:2/'")
    assert image(kubectl.server) == "model:2"


async def test_stateful_sets_scale_and_pods_set_images(kubectl: Kubectl) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "main", "image": "m:1"}]}}
    spec = {"serviceName": "db", "selector": {"matchLabels": {"a": "b"}}, "template": template}
    manifest = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": spec}
    await kubectl.run("apply", "-f", "-", stdin=manifest)
    await kubectl.run("scale", "sts/db", "--replicas=3")
    await kubectl.run("patch", "sts", "db", "-p", '{"spec":{"template":{"spec":{"nodeSelector":{"gpu":"yes"}}}}}')
    made = kubectl.server.get(STATEFUL_SETS, "default", "db")["spec"]
    assert (made["replicas"], made["template"]["spec"]["nodeSelector"]) == (3, {"gpu": "yes"})
    assert made["template"]["spec"]["containers"][0]["image"] == "m:1"


async def test_a_watch_shows_changes_as_they_come(kubectl: Kubectl) -> None:
    kubectl.server.create(LEADER_WORKER_SETS, lws())
    process = await kubectl.start("get", "lws", "-w", "--no-headers")
    assert process.stdout is not None
    assert (await asyncio.wait_for(process.stdout.readline(), 10)).split()[:2] == [b"demo", b"1"]
    kubectl.server.patch(LEADER_WORKER_SETS, "default", "demo", {"spec": {"replicas": 9}})
    assert (await asyncio.wait_for(process.stdout.readline(), 10)).split()[:2] == [b"demo", b"9"]
    process.terminate()
    await process.communicate()


async def test_wait_ends_when_the_condition_comes(kubectl: Kubectl) -> None:
    kubectl.server.create(LEADER_WORKER_SETS, lws())
    waiting = asyncio.ensure_future(kubectl.run("wait", "--for=condition=Available", "lws/demo", "--timeout=20s"))
    counting = asyncio.ensure_future(kubectl.run("wait", "--for=jsonpath={.status.replicas}=2", "lws/demo"))
    condition = {"type": "Available", "status": "True", "reason": "Up", "message": ""}
    condition["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    status = {"status": {"replicas": 2, "conditions": [condition]}}
    kubectl.server.patch(LEADER_WORKER_SETS, "default", "demo", status, subresource="status")
    assert "condition met" in await waiting
    assert "condition met" in await counting


async def test_delete_waits_until_the_pod_is_gone(kubectl: Kubectl) -> None:
    kubectl.server.create(PODS, pod(node="n1"))
    deleting = asyncio.ensure_future(kubectl.run("delete", "pod", "web-0"))
    marked = asyncio.Event()
    kubectl.server.store.subscribe(lambda _: marked.set())
    await asyncio.wait_for(marked.wait(), 10)
    assert not deleting.done()
    kubectl.server.delete(PODS, "default", "web-0", grace_seconds=0)
    assert "deleted" in await deleting


async def test_create_and_replace_work_from_manifests(kubectl: Kubectl) -> None:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", **config_map(a="1")}
    await kubectl.run("create", "-f", "-", stdin=manifest)
    assert "AlreadyExists" in await kubectl.run("create", "-f", "-", stdin=manifest, code=1)
    await kubectl.run("replace", "-f", "-", stdin={**manifest, "data": {"a": "2"}})
    assert await kubectl.run("get", "cm", "settings", "-o", "jsonpath={.data.a}") == "2"
