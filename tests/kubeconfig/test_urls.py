"""URLs in messages: what of them may be a secret is left out, and the sentence around them stays."""

from __future__ import annotations

import pytest

from rollout_lws.kubeconfig.urls import scrubbed

PROXY = 'http://bob:p <a> "s" s@proxy:8080'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("no answer from http://bob:pa(ss)word@proxy:8080", "no answer from http://proxy:8080"),
        ("http://bob:p'a[s],s@proxy:8080, url='https://h:1/token/a,b(c)d'.", "http://proxy:8080, url='https://h:1'."),
        ("(see https://h/token/abc,def)", "(see https://h)"),
        ("[https://[::1]:6443/a, https://[fd00::1]]", "[https://[::1]:6443, https://[fd00::1]]"),
        ('"https://h/a" <https://h/b>', '"https://h" <https://h>'),
        (f"{PROXY}/x: refused, again {PROXY}", "http://proxy:8080: refused, again http://proxy:8080"),
        ("no URL: a,b (c)", "no URL: a,b (c)"),
    ],
)
def test_of_a_url_only_scheme_host_and_port_are_told(text: str, told: str) -> None:
    assert scrubbed(text, "https://h", PROXY) == told
