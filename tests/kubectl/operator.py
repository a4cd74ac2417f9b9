"""What a person has at hand: a sandbox, kubectl, and manifests in files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.kubectl.programs import ROLLOUT_LWS, Program, Programs
from tests.kubectl_tool import Kubectl

Object = dict[str, Any]

NAMESPACE = "prod"

WORKLOAD = """\
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata:
  name: llama
  namespace: prod
  labels:
    rollouts.kruise.io/rollout-id: {version}
spec:
  replicas: {replicas}
  rolloutStrategy:
    type: RollingUpdate
    rollingUpdateConfiguration:
      maxUnavailable: {unavailable}
  leaderWorkerTemplate:
    size: 2
    leaderTemplate:
      metadata:
        labels: {{app: llama, role: leader}}
      spec:
        containers:
          - name: vllm-leader
            image: vllm/vllm-openai:{version}
            resources:
              limits: {{nvidia.com/gpu: "2"}}
    workerTemplate:
      metadata:
        labels: {{app: llama}}
      spec:
        containers:
          - name: vllm-worker
            image: vllm/vllm-openai:{version}
            resources:
              limits: {{nvidia.com/gpu: "2"}}
"""

ROLLOUT = """\
apiVersion: rollouts.kruise.io/v1beta1
kind: Rollout
metadata:
  name: llama
  namespace: prod
spec:
  workloadRef:
    apiVersion: leaderworkerset.x-k8s.io/v1
    kind: LeaderWorkerSet
    name: llama
  strategy:
    canary:
      steps:
        - replicas: 1
          pause: {duration: 1}
        - replicas: 50%
          pause: {}
        - replicas: 100%
"""

APPROVAL = '{"status":{"canaryStatus":{"currentStepState":"StepReady"}}}'


def workload(version: str, replicas: int = 4, unavailable: int = 1) -> str:
    """The manifest in the user's repository; ``version`` is the image's tag and the release's id."""
    return WORKLOAD.format(version=version, replicas=replicas, unavailable=unavailable)


class Operator:
    """kubectl in namespace ``prod`` of a sandbox of one's own."""

    def __init__(self, programs: Programs, home: Path) -> None:
        self.programs = programs
        self.kubeconfig = home / "kubeconfig"
        self.kubectl = Kubectl(self.kubeconfig, home)

    async def start_sandbox(self, *flags: str) -> Program:
        """A cluster on a free port; pods load for 0.2 s. Namespace ``prod`` is there and the kubeconfig's own."""
        command = (ROLLOUT_LWS, "sandbox", "--kubeconfig", str(self.kubeconfig), "--ready-after", "1s", "--speed", "5")
        sandbox = await self.programs.start(*command, *flags)
        await sandbox.says("sandbox ready")
        await self.run("create", "namespace", NAMESPACE)
        await self.run("config", "set-context", "--current", f"--namespace={NAMESPACE}")
        return sandbox

    async def run(self, *arguments: str, stdin: object = None, code: int | None = 0, **environment: str) -> str:
        return await self.kubectl.run(*arguments, stdin=stdin, code=code, **environment)

    async def watch(self, *arguments: str) -> Program:
        """A kubectl that goes on in the background."""
        return await self.programs.start("kubectl", *arguments, environment=self.kubectl.environment)

    async def apply(self, manifest: str, *flags: str) -> str:
        return await self.run("apply", *flags, "-f", "-", stdin=manifest)

    async def wait(self, what: str, condition: str) -> None:
        """``kubectl wait``: for a condition's name, or for ``path=value`` of the status."""
        path, equals, value = condition.partition("=")
        wanted = f"jsonpath={{.status.{path}}}={value}" if equals else f"condition={condition}"
        await self.run("wait", what, f"--for={wanted}", "--timeout=25s")

    async def gone(self, *what: str) -> None:
        """Wait until none of these exist; there may be none any more when it begins."""
        told = await self.run("wait", *what, "--for=delete", "--timeout=25s", code=None)
        assert "timed out" not in told, told

    async def until_state(self, state: str) -> None:
        await self.wait("rollout/llama", f"summary.state={state}")

    async def approve(self) -> None:
        await self.run("patch", "rollout", "llama", "--subresource=status", "--type=merge", "-p", APPROVAL)

    async def get(self, *arguments: str) -> Object:
        found: Object = json.loads(await self.run("get", *arguments, "-o", "json"))
        return found

    async def everything(self) -> dict[str, Object]:
        """Every object of every kind there is, by kind and name; Events, which only tell, are left out."""
        kinds = (await self.run("api-resources", "--verbs=list", "-o", "name")).split()
        told = [kind for kind in kinds if not kind.startswith("events")]
        found = await self.get(",".join(told), "--all-namespaces")
        return {f"{item['kind']}/{item['metadata']['name']}": item for item in found["items"]}

    async def adopted(self, version: str = "v1", replicas: int = 4, unavailable: int = 1) -> None:
        """LWS and Rollout ``llama`` at rest, everything ready."""
        await self.apply(workload(version, replicas, unavailable))
        await self.wait("lws/llama", "Available")
        await self.adopted_by_rollout()

    async def adopted_by_rollout(self) -> None:
        await self.apply(ROLLOUT)
        await self.wait("rollout/llama", "Ready")
