"""What is wrong in one place hides nothing in another, as long as the rules do not hang on it."""

from __future__ import annotations

import pytest

from tests.cli.lint.manifests import LWS, ROLLOUT, ROUTE, SERVICE, edited, found, joined

LOST = edited(SERVICE, "app: chat", "app: chart")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("duration: 600", "duration: 10m"),
        ("traffic: 20%", "traffic: 20"),
        ("pause: {}", "pause: soon"),
        ("    canary:", "    onFailure: abort\n    canary:"),
        ("      steps:", "      failureThreshold: 101%\n      steps:"),
        ("        - service: chat-api", "        - drainSeconds: 1h\n          service: chat-api"),
        ("pause: {}", "matches: [{headers: [{name: a}]}]"),
    ],
)
def test_a_rollout_is_judged_without_what_no_rule_hangs_on(old: str, new: str) -> None:
    codes = [each.code for each in found(joined(edited(ROLLOUT, old, new), LWS, LOST, ROUTE))]
    assert sorted(codes) in (["LWS102", "LWS210"], ["LWS103", "LWS210"])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("            args: [serve]", "            resources: {limits: {memory: 64GB}}"),
        ("args: [serve]", "args: serve"),
        ("            args: [serve]", "            env: [{name: A, value: 1}]"),
    ],
)
def test_an_lws_is_judged_without_what_no_rule_hangs_on(old: str, new: str) -> None:
    codes = [each.code for each in found(joined(ROLLOUT, edited(LWS, old, new), LOST, ROUTE))]
    assert codes == ["LWS102", "LWS210"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("- replicas: 1\n", "- replicas: one\n"),
        ("    canary:", "    canary:\n      capacity: Sideways"),
        ("name: chat\n  str", "nam: chat\n  str"),
    ],
)
def test_what_decides_about_groups_or_names_objects_is_never_left_out(old: str, new: str) -> None:
    codes = {each.code for each in found(joined(edited(ROLLOUT, old, new), LWS, LOST, ROUTE))}
    assert "LWS404" in codes
    assert "LWS210" not in codes


def test_a_service_is_judged_without_its_ports_and_labels() -> None:
    lost = edited(LOST, "port: 80", "port: http", "  name: chat-api\n", "  name: chat-api\n  labels: {version: 1.0}\n")
    assert [each.code for each in found(joined(ROLLOUT, LWS, lost, ROUTE))] == ["LWS102", "LWS210", "LWS102"]
