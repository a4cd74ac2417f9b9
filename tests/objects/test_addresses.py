"""Addresses, ports and paths that no author of an object may have the controller ask."""

from __future__ import annotations

import pytest

from rollout_lws.objects.addresses import leads_elsewhere, node_port, pod_address


@pytest.mark.parametrize(
    ("text", "shown"), [("10.0.0.7", "10.0.0.7"), ("fd00::7", "[fd00::7]"), ("::ffff:10.0.0.7", "10.0.0.7")]
)
def test_addresses_of_pods(text: str, shown: str) -> None:
    assert pod_address(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        *("", "127.0.0.1", "127.8.8.8", "::1", "169.254.169.254", "fe80::1", "0.0.0.0", "::", "224.0.0.1", "ff02::1"),
        *("::ffff:127.0.0.1", "::ffff:169.254.169.254", "metadata.internal", "10.0.0.7@evil", "0x7f.1", "10.0.0.7:80"),
    ],
)
def test_addresses_of_no_pod(text: str) -> None:
    with pytest.raises(ValueError, match="address"):
        pod_address(text)


def test_ports_of_nodes() -> None:
    assert [port for port in range(65_536) if node_port(port)] == [
        *(22, 2379, 2380, 2381, 6443, 10248, 10249, 10250, 10255, 10256, 10257, 10258, 10259)
    ]


@pytest.mark.parametrize("path", ["/../x", "/a/../../x", "/./x", "x", "", "/%2e%2e/x", "/x?y", "/x#y", "/a\\b"])
def test_paths_that_lead_elsewhere(path: str) -> None:
    assert leads_elsewhere(path)


@pytest.mark.parametrize("path", ["/", "/v1/completions", "/v1/models/m:predict", "/a..b/"])
def test_paths(path: str) -> None:
    assert not leads_elsewhere(path)
