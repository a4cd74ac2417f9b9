"""A controller process with a guard that tells at its end how its event loop and its memory did since a SIGUSR1.

python -m tests.admission.watched KUBECONFIG HEALTH_PORT GUARD_PORT
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from pathlib import Path

from rollout_lws.controller import process
from rollout_lws.settings import Address, Election, Guard, Settings

HOST = "127.0.0.1"


class Pulse:
    """``pause`` is the longest time, in seconds of this process's CPU, for which the loop did not come round: whatever
    else the machine does does not count. ``grown`` is the most memory, in bytes, over what there was at first.
    """

    def __init__(self) -> None:
        self.pause = 0.0
        self.grown = 0

    async def beat(self, begin: asyncio.Event) -> None:
        await begin.wait()
        first, last = _resident(), time.process_time()
        while True:
            await asyncio.sleep(0.001)
            now = time.process_time()
            self.pause, last = max(self.pause, now - last), now
            self.grown = max(self.grown, _resident() - first)


def _resident() -> int:
    """Bytes of memory that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


async def main(kubeconfig: str, health: int, guard: int) -> None:
    settings = Settings(
        kubeconfig=kubeconfig,
        health=Address(HOST, health),
        election=Election(namespace="default"),
        guard=Guard(Address(HOST, guard), (HOST,)),
    )
    pulse, begin = Pulse(), asyncio.Event()
    beating = asyncio.create_task(pulse.beat(begin))
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, begin.set)
    await process.run(settings)
    beating.cancel()
    sys.stdout.write(json.dumps({"pause": pulse.pause, "grown": pulse.grown}) + "\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
