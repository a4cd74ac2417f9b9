"""No role of ours reaches what a release does not need."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from rollout_lws.cli.install.manifests import objects
from rollout_lws.cli.install.options import EXTRAS, Installation
from tests.docs.pages import ROOT, blocks, pages

IMAGE = "registry.example.com/rollout-lws:1"
INSTALLATIONS = [
    Installation(image=IMAGE, extras=tuple(EXTRAS)),
    Installation(image=IMAGE, watch_namespaces=("a", "b")),
    Installation(image=IMAGE, api_group="rollouts.example.com"),
]
#: What would make the controller's account worth more than the releases that it makes.
_FORBIDDEN = {"secrets", "pods/exec", "pods/attach", "pods/portforward", "serviceaccounts/token", "nodes", "roles"}


def _rules(installation: Installation) -> list[tuple[str, dict[str, Any]]]:
    found = [each for each in objects(installation) if each["kind"] in ("Role", "ClusterRole")]
    return [(each["metadata"]["name"], rule) for each in found for rule in each.get("rules") or ()]


@pytest.mark.parametrize("installation", INSTALLATIONS, ids=["all", "some namespaces", "another group"])
def test_no_rule_reaches_secrets_or_everything(installation: Installation) -> None:
    rules = _rules(installation)
    assert len(rules) > 10
    for name, rule in rules:
        assert not _FORBIDDEN & set(rule.get("resources", ())), name
        assert "*" not in {*rule.get("resources", ()), *rule["verbs"], *rule.get("apiGroups", ())}, name
        assert not {"escalate", "bind", "impersonate"} & set(rule["verbs"]), name
        assert "nonResourceURLs" not in rule, name


def test_no_page_tells_anybody_to_give_more() -> None:
    shown = [
        document
        for page in pages()
        for block in blocks(page, "yaml")
        if "kind: ClusterRole\n" in block
        for document in yaml.safe_load_all(block)
    ]
    assert shown
    for each in shown:
        for rule in each.get("rules") or ():
            assert not {"secrets", "*"} & {*rule.get("resources", ()), *rule["verbs"]}


def test_the_pods_account_is_used_by_nothing_else() -> None:
    (deployment,) = (each for each in objects(INSTALLATIONS[0]) if each["kind"] == "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    assert "volumes" not in pod
    assert not pod.get("hostNetwork") and not pod.get("hostPID")
    assert (ROOT / "docs/threat-model.md").exists()
