"""Which proxy leads to a server."""

from __future__ import annotations

import pytest

from rollout_lws.errors import UsageError
from rollout_lws.kubeconfig.proxies import proxy_of

SERVER = "https://api.example.org:6443"
PROXY = "http://proxy:3128"


@pytest.mark.parametrize(
    ("environment", "proxy"),
    [
        ({}, ""),
        ({"HTTPS_PROXY": PROXY}, PROXY),
        ({"https_proxy": PROXY}, PROXY),
        ({"HTTPS_PROXY": "proxy:3128"}, PROXY),
        ({"HTTP_PROXY": PROXY}, ""),
        ({"HTTPS_PROXY": "socks5://proxy"}, "socks5://proxy"),
        ({"HTTPS_PROXY": PROXY, "NO_PROXY": "*"}, ""),
        ({"HTTPS_PROXY": PROXY, "no_proxy": "a, example.org"}, ""),
        ({"HTTPS_PROXY": PROXY, "NO_PROXY": ".example.org"}, ""),
        ({"HTTPS_PROXY": PROXY, "NO_PROXY": "API.EXAMPLE.ORG"}, ""),
        ({"HTTPS_PROXY": PROXY, "NO_PROXY": ".api.example.org"}, PROXY),
        ({"HTTPS_PROXY": PROXY, "NO_PROXY": "ample.org"}, PROXY),
        ({"HTTPS_PROXY": PROXY, "NO_PROXY": "example.org:6443"}, ""),
        ({"HTTPS_PROXY": PROXY, "NO_PROXY": "example.org:443"}, PROXY),
        ({"HTTPS_PROXY": PROXY, "NO_PROXY": ","}, PROXY),
    ],
)
def test_the_environments_proxy_and_its_exceptions(environment: dict[str, str], proxy: str) -> None:
    assert proxy_of(SERVER, {}, environment) == proxy


@pytest.mark.parametrize(
    ("server", "listed", "direct"),
    [
        ("https://10.1.2.3", "10.0.0.0/8", True),
        ("https://10.1.2.3", "10.1.2.3", True),
        ("https://10.1.2.3", "10.1.2.3:443", True),
        ("https://10.1.2.3", "10.1.2.3:6443", False),
        ("https://11.1.2.3", "10.0.0.0/8", False),
        ("https://[fd00::1]:6443", "fd00::/8", True),
        ("https://[fd00::1]:6443", "fd00::1", True),
        ("https://[fd00::1]:6443", "[fd00::1]:6443", True),
        ("https://[fd00::1]:6443", "[fd00::1]:443", False),
        ("https://localhost:6443", "", True),
        ("https://127.0.0.2", "", True),
        ("https://[::1]", "", True),
    ],
)
def test_addresses_and_networks_that_are_reached_directly(server: str, listed: str, direct: bool) -> None:
    assert (proxy_of(server, {}, {"HTTPS_PROXY": PROXY, "NO_PROXY": listed}) == "") is direct


def test_the_kubeconfigs_proxy_holds_whatever_the_environment_says() -> None:
    environment = {"HTTPS_PROXY": "http://other", "NO_PROXY": "*"}
    assert proxy_of("https://127.0.0.1", {"proxy-url": PROXY}, environment) == PROXY


@pytest.mark.parametrize("proxy", ["ftp://proxy", "http://", "socks4://proxy"])
def test_a_proxy_of_another_kind_is_refused_and_its_place_named(proxy: str) -> None:
    with pytest.raises(UsageError, match=r"the kubeconfig's proxy-url .* is no http://, https:// or socks5:// URL"):
        proxy_of(SERVER, {"proxy-url": proxy}, {})
    with pytest.raises(UsageError, match=r"\$HTTPS_PROXY .* is no http://"):
        proxy_of(SERVER, {}, {"HTTPS_PROXY": proxy})


@pytest.mark.parametrize(
    ("proxy", "told"),
    [
        ("ftp://bob:hunter2@proxy:8080", "'ftp://proxy:8080'"),
        ("http://bob:hun/ter2@proxy:8080", "'http://...'"),
        ("http://proxy:hunter2", "'http://proxy:hunter2'"),
        ("ftp://proxy/hunter2?hunter2", "'ftp://proxy'"),
    ],
)
def test_a_refused_proxy_is_named_without_its_secrets(proxy: str, told: str) -> None:
    for cluster, environment in (({"proxy-url": proxy}, {}), ({}, {"HTTPS_PROXY": proxy})):
        with pytest.raises(UsageError) as refused:
            proxy_of(SERVER, cluster, environment)
        assert told in str(refused.value)
        assert "bob" not in str(refused.value)
        assert "ter2" not in str(refused.value).replace(told, "")
