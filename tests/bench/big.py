"""The process of an API server that holds one release of many groups, on which nothing happens by itself.

Usage: python -m tests.bench.big KUBECONFIG GROUPS SIZE. It tells when all its pods are ready.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from rollout_lws.cli.sandbox.local_cluster import playground
from rollout_lws.objects.resources import DEFAULT_API_GROUP, LEADER_WORKER_SETS, PODS
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.store import Event
from tests.bench import manifests
from tests.bench.lines import tell
from tests.bench.manifests import NAME, ROLLOUTS

_NAMESPACE = "default"
_STEPS = ({"replicas": 1, "pause": {}}, {"replicas": "100%"})


async def main(kubeconfig: Path, groups: int, size: int) -> None:
    async with playground(Options(), DEFAULT_API_GROUP) as cluster:
        cluster.write_kubeconfig(kubeconfig)
        lws = manifests.workload(_NAMESPACE, replicas=groups, size=size, load=0.1)
        for role in ("leader", "worker"):
            # What no node of the sandbox could take.
            pod = lws["spec"]["leaderWorkerTemplate"][f"{role}Template"]["spec"]
            pod["affinity"], pod["containers"][0]["resources"] = {}, {}
        ready = asyncio.Event()
        seen: set[str] = set()

        def look(event: Event) -> None:
            pod = event.object or {}
            told = (pod.get("status") or {}).get("conditions") or ()
            if event.resource == PODS and any((each["type"], each["status"]) == ("Ready", "True") for each in told):
                seen.add(pod["metadata"]["name"])
                if len(seen) % 400 == 0:
                    tell(progress=f"command line: {len(seen):,} pods are ready")
                if len(seen) == groups * size:
                    ready.set()

        cluster.server.store.subscribe(look)
        cluster.server.create(LEADER_WORKER_SETS, lws)
        cluster.server.create(ROLLOUTS, manifests.rollout(_NAMESPACE, _STEPS))
        await ready.wait()
        tell(ready=NAME)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
