"""What an operator may set, and what each wrong value is answered."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner

from rollout_lws.cli.controller import controller
from rollout_lws.errors import UsageError
from rollout_lws.observe.capabilities import definition, of_schema
from rollout_lws.rollout.observation import Capabilities
from rollout_lws.settings import Address, Guard, Settings


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (":8080", Address("", 8080)),
        ("127.0.0.1:0", Address("127.0.0.1", 0)),
        ("[::1]:80", Address("::1", 80)),
        ("0", None),
    ],
)
def test_an_address_is_host_and_port_and_0_is_none(text: str, expected: Address | None) -> None:
    assert Address.parse(text, "--x") == expected


@pytest.mark.parametrize("text", ["", "8080", "host", ":70000", "host:http"])
def test_what_is_no_address_is_refused_by_the_flags_name(text: str) -> None:
    with pytest.raises(UsageError, match="--x"):
        Address.parse(text, "--x")


@pytest.mark.parametrize(
    ("wrong", "flag"),
    [
        ({"api_group": "rollouts"}, "--api-group"),
        ({"api_group": "Rollouts.io"}, "--api-group"),
        ({"namespaces": ("Prod",)}, "--namespace"),
        ({"namespaces": ("prod", "prod")}, "--namespace"),
        ({"workers": 0}, "--workers"),
        ({"request_timeout": 0}, "--request-timeout"),
        ({"log_format": "xml"}, "--log-format"),
        ({"notify": ("/etc/Hook",)}, "--notify: 'Hook'"),
        ({"notify": ("/",)}, "--notify: ''"),
        ({"notify": ("/a/hook", "/b/hook")}, "--notify has two destinations of the same name"),
        ({"cluster_name": "prod eu"}, "--cluster-name"),
    ],
)
def test_a_value_that_cannot_work_is_refused_by_its_flags_name(wrong: dict[str, Any], flag: str) -> None:
    with pytest.raises(UsageError, match=flag):
        Settings(**wrong)


@pytest.mark.parametrize(
    ("status", "spec", "expected"),
    [
        ({}, {}, Capabilities(observed_generation=False, group_identity=False)),
        ({"observedGeneration": {}}, {}, Capabilities(observed_generation=True, group_identity=False)),
        (
            {"observedGeneration": {}},
            {"groupIdentity": {}},
            Capabilities(observed_generation=True, group_identity=True),
        ),
    ],
)
def test_capabilities_are_the_fields_that_the_schema_has(
    status: dict[str, Any], spec: dict[str, Any], expected: Capabilities
) -> None:
    assert of_schema({"properties": {"status": {"properties": status}, "spec": {"properties": spec}}}) == expected


def test_only_leader_worker_sets_definition_tells_capabilities() -> None:
    assert definition(b'{"metadata": {"name": "other.example.org"}}').capabilities is None


def guarded(*given: str) -> Any:
    made: list[Settings] = []

    async def run(settings: Settings) -> None:
        made.append(settings)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rollout_lws.controller.process.run", run)
        result = CliRunner().invoke(controller, [*given], obj=None)
    return made[0].guard if made else result.output


def test_the_guard_is_off_unless_it_is_asked_for() -> None:
    assert guarded() is None
    assert guarded("--guard") == Guard(Address("", 9443))
    hosts = ("--guard-host", "10.0.0.1", "--guard-host", "guard.example.com")
    assert guarded("--guard", "--guard-bind-address", "127.0.0.1:0", *hosts) == Guard(
        Address("127.0.0.1", 0), ("10.0.0.1", "guard.example.com")
    )


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("--guard-bind-address", "0"), "--guard-bind-address 0: leave --guard out instead"),
        (("--guard-bind-address", "guard"), "--guard-bind-address 'guard' is no address"),
        (("--guard-host", "a b"), "--guard-host 'a b' is neither a host name nor an address"),
    ],
)
def test_what_makes_no_sense_of_a_guard_is_told(given: tuple[str, ...], told: str) -> None:
    assert told in guarded("--guard", *given)
