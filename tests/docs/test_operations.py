"""What whoever is on call types by the page of alerts answers at once, whatever the release does."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.docs.pages import ROOT, blocks
from tests.reader import reading

PAGE = Path("docs/operations.md")
#: A release that waits for a person.
WAITING = """
kubectl apply -f examples/quickstart/
kubectl wait rollout/quickstart --for=condition=Ready --timeout=1m
rollout-lws set image quickstart '*=nginxinc/nginx-unprivileged:1.28'
rollout-lws status quickstart --for paused
"""
#: Seconds in which a command answers; none may wait for something to happen.
AT_ONCE = 15


def typed() -> list[str]:
    """The page's commands of our own, each once, with a Rollout in place of NAME; those that end the release last."""
    lines = [line for block in blocks(PAGE, "sh") for line in block.splitlines() if line.startswith("kubectl rollout")]
    ending = ("abort",)
    return sorted(
        {line.replace("NAMESPACE", "default").replace("NAME", "quickstart") for line in lines},
        key=lambda line: (any(word in line for word in ending), line),
    )


@pytest.mark.long
@pytest.mark.kubectl
async def test_the_commands_of_the_page_answer_at_once(tmp_path: Path) -> None:
    verbs = {re.findall(r"^kubectl rollout-lws (\w+) quickstart -n default$", line)[0] for line in typed()}
    assert verbs == {"get", "doctor", "events", "retry", "abort"}
    script = [WAITING]
    for line in typed():
        # 1 is an answer, too: something is broken, or there is nothing to retry.
        script.append(f"timeout {AT_ONCE} {line} || test $? -eq 1")
    async with reading(tmp_path) as reader:
        printed = await reader.run("\n".join(script))
    assert "rollout/quickstart aborted at step 1/" in printed


def test_the_rules_are_loaded_as_they_are() -> None:
    (block,) = [each for each in blocks(PAGE, "sh") if "PrometheusRule" in each]
    script = block.replace("kubectl apply -f -", "cat")
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=ROOT, capture_output=True, check=True)
    made = yaml.safe_load(done.stdout)
    assert (made["kind"], made["metadata"]["name"]) == ("PrometheusRule", "rollout-lws")
    assert made["spec"] == yaml.safe_load((ROOT / "monitoring/alerts.yaml").read_text())
