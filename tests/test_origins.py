"""What may be asked: a server by scheme, host and port, and below a path if one is named."""

from __future__ import annotations

import pytest

from rollout_lws.errors import UsageError
from rollout_lws.origins import Allowed
from rollout_lws.settings import Settings


@pytest.mark.parametrize(
    ("allowed", "url", "covers"),
    [
        ("http://prom:9090", "http://prom:9090", True),
        ("http://prom:9090/", "http://prom:9090/any/path", True),
        ("https://prom", "https://prom:443", True),
        ("http://prom:9090", "https://prom:9090", False),
        ("http://prom:9090", "http://prom:9091", False),
        ("http://prom:9090", "http://prom.:9090", False),
        ("http://prom:9090", "http://user@prom:9090", False),
        ("http://prom:9090", "http://prom:9090?x=y", False),
        ("http://vm:8481/select/0/prometheus", "http://vm:8481/select/0/prometheus/", True),
        ("http://vm:8481/select/0/prometheus", "http://vm:8481/select/42/prometheus", False),
        ("http://vm:8481/select/0", "http://vm:8481/select/01", False),
        ("http://vm:8481/select/0", "http://vm:8481/select/0/../1", False),
        ("http://vm:8481/select/0", "http://vm:8481/select/0/%2e%2e/1", False),
        ("http://[fd00::1]:9090", "http://[fd00::1]:9090", True),
    ],
)
def test_what_is_covered(allowed: str, url: str, covers: bool) -> None:
    assert Allowed.parse(allowed, "--gate-addresses").covers(url) is covers


@pytest.mark.parametrize(
    "url", ["prom:9090", "ftp://prom", "http://", "http://prom:x", "http://a@prom", "http://prom?x"]
)
def test_what_is_no_address_is_refused_at_start(url: str) -> None:
    with pytest.raises(UsageError, match=r"--gate-addresses .* is no address of a server"):
        Settings(gate_addresses=(url,))
    with pytest.raises(UsageError, match=r"--prometheus .* is no address of a server"):
        Settings(prometheus=url)
