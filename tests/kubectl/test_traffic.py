"""An operator's weighted release with nothing but kubectl: shares step by step, and everything as before afterwards."""

from __future__ import annotations

import pytest

from tests.kubectl.operator import ROLLOUT, Object, Operator, workload

pytestmark = pytest.mark.kubectl

TRAFFIC = """\
apiVersion: v1
kind: Service
metadata:
  name: llama-api
  namespace: prod
spec:
  selector: {app: llama, role: leader}
  ports: [{port: 80, targetPort: 8000}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata:
  name: inference
  namespace: prod
spec:
  gatewayClassName: any
  listeners: [{name: http, port: 80, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: llama
  namespace: prod
spec:
  parentRefs: [{name: inference}]
  rules:
    - backendRefs: [{name: llama-api, port: 80}]
"""

#: Two weighted steps that ask; requests on their way get no time to end, since none are.
ROUTED = f"""\
{ROLLOUT.partition("      steps:")[0]}\
      trafficRoutings:
        - service: llama-api
          gracePeriodSeconds: 0
          drainSeconds: 0
          gateway: {{httpRouteName: llama}}
      steps:
        - replicas: 1
          traffic: 10%
          pause: {{}}
        - replicas: 2
          traffic: 40%
          pause: {{}}
"""

#: Users' objects, of which a release borrows the first two.
USERS = ("service/llama-api", "httproute/llama", "gateway/inference")


class Router:
    """What kubectl shows of the route and its Services."""

    def __init__(self, operator: Operator) -> None:
        self.operator = operator

    async def weights(self) -> dict[str, int]:
        route = await self.operator.get("httproute", "llama")
        return {ref["name"]: ref.get("weight", 1) for ref in route["spec"]["rules"][0]["backendRefs"]}

    async def users_objects(self) -> list[Object]:
        """What has to come back: the spec, the labels and the annotations of each."""
        found = [await self.operator.get(name) for name in USERS]
        members = ("labels", "annotations", "finalizers", "ownerReferences")
        return [{"spec": each["spec"], **{key: each["metadata"].get(key) for key in members}} for each in found]

    async def waits_in_step(self, step: int) -> dict[str, int]:
        """The weights as soon as step ``step`` waits for its approval."""
        await self.operator.wait("rollout/llama", f"currentStepIndex={step}")
        await self.operator.until_state("AwaitingApproval")
        return await self.weights()

    async def at_rest(self) -> list[Object]:
        """LWS, Service, Gateway, route and Rollout applied and at rest; what users own, before any release."""
        await self.operator.apply(workload("v1"))
        await self.operator.apply(TRAFFIC)
        await self.operator.wait("lws/llama", "Available")
        before = await self.users_objects()
        await self.operator.apply(ROUTED)
        await self.operator.wait("rollout/llama", "Ready")
        return before

    async def assert_as_before(self, before: list[Object]) -> None:
        """The new version runs in every group, and of routing nothing is left."""
        assert await self.users_objects() == before
        names = {name for name in await self.operator.everything() if "canary" in name}
        assert names == set()
        assert "traffic" not in (await self.operator.get("rollout", "llama"))["status"]
        pods = (await self.operator.get("pods"))["items"]
        assert {pod["spec"]["containers"][0]["image"] for pod in pods} == {"vllm/vllm-openai:v2"}


async def released(operator: Operator) -> None:
    await operator.wait("rollout/llama", "observedRolloutID=v2")
    await operator.wait("rollout/llama", "Ready")


@pytest.mark.long
async def test_two_weighted_steps_are_approved_with_kubectl_and_give_everything_back(operator: Operator) -> None:
    router = Router(operator)
    before = await router.at_rest()
    assert await router.weights() == {"llama-api": 1}
    await operator.apply(workload("v2"))
    assert await router.waits_in_step(1) == {"llama-api": 90, "llama-api-canary": 10}
    selector = (await operator.get("service", "llama-api-canary"))["spec"]["selector"]
    assert selector["leaderworkerset.sigs.k8s.io/name"] == "llama-canary"
    row = (await operator.run("get", "rollout", "llama")).splitlines()
    assert dict(zip(row[0].split(), row[1].split(), strict=True))["TRAFFIC"] == "10%"
    await operator.approve()
    assert await router.waits_in_step(2) == {"llama-api": 60, "llama-api-canary": 40}
    await operator.approve()
    await released(operator)
    await router.assert_as_before(before)
