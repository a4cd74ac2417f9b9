"""Who may use the page: each request that a browser, a foreign page or another program can send."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout_lws.cli.dashboard.protection import HEADERS, Door, Enter, Refused, judge

HOST = "127.0.0.1:8321"
DOOR = Door(frozenset({HOST, "localhost:8321"}), "the-token", "the-ticket", "rollout-lws-8321", "once")
TICKET = {"cookie": "rollout-lws-8321=the-ticket"}
#: What a browser sends by itself for each kind of request.
LINK = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
TYPED = {"sec-fetch-site": "none", "sec-fetch-mode": "navigate"}
OWN = {"sec-fetch-site": "same-origin", "sec-fetch-mode": "cors"}
JSON = {"content-type": "application/json"}
OWN_POST = {**OWN, **JSON, "origin": f"http://{HOST}"}


def asked(method: str = "GET", token: str | None = None, *, host: str = HOST, **headers: str) -> int:
    """The code of the answer; 303 for one that lets in, 200 for one that is answered."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    verdict = judge(DOOR, method, {"host": host, **named}, token)
    if isinstance(verdict, Enter):
        return 303
    return verdict.code if isinstance(verdict, Refused) else 200


def with_(*headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("-", "_"): value for each in headers for name, value in each.items()}


@pytest.mark.parametrize(
    ("code", "method", "headers"),
    [
        (200, "GET", with_(TICKET)),
        (200, "GET", with_(TICKET, OWN)),
        (200, "GET", with_(TICKET, TYPED)),
        (200, "GET", with_(TICKET, LINK)),
        (200, "HEAD", with_(TICKET, OWN)),
        (200, "POST", with_(TICKET, OWN_POST)),
        (200, "POST", with_(TICKET, OWN_POST, {"content-type": "application/json; charset=utf-8"})),
        # Without the cookie, and with one that is not ours.
        (401, "GET", {}),
        (401, "GET", {"cookie": "rollout-lws-8321="}),
        (401, "GET", {"cookie": "rollout-lws-8321=the-tickeT"}),
        (401, "GET", {"cookie": "rollout-lws-9999=the-ticket"}),
        (401, "GET", {"cookie": "rollout-lws-8321=ë\x7f; \x00;;="}),
        (401, "POST", with_(OWN_POST)),
        # A foreign page reads, by fetch, by an element, and by one that sends an Origin.
        (403, "GET", with_(TICKET, {"sec-fetch-site": "cross-site", "sec-fetch-mode": "cors"})),
        (403, "GET", with_(TICKET, {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"})),
        (403, "GET", with_(TICKET, {"sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors"})),
        (403, "GET", with_(TICKET, {"origin": "http://evil.example"})),
        (403, "GET", with_(TICKET, {"origin": "null"})),
        (403, "GET", with_(TICKET, {"origin": "http://127.0.0.1:9999"})),
        # A foreign page posts, by fetch and by a form; browsers that send no Sec-Fetch headers send an Origin.
        (403, "POST", with_(TICKET, JSON, {"origin": "http://evil.example"})),
        (403, "POST", with_(TICKET, JSON, {"origin": "http://localhost:9999"})),
        (403, "POST", with_(TICKET, JSON, {"origin": "null"})),
        (403, "POST", with_(TICKET, JSON, LINK, {"origin": "http://evil.example"})),
        (403, "POST", with_(TICKET, OWN_POST, {"sec-fetch-site": "same-site"})),
        (403, "POST", with_(TICKET, JSON)),
        # A page of our own origin sends JSON only.
        (415, "POST", with_(TICKET, OWN_POST, {"content-type": "text/plain"})),
        (415, "POST", with_(TICKET, OWN_POST, {"content-type": "application/x-www-form-urlencoded"})),
        (415, "POST", with_(TICKET, OWN, {"origin": f"http://{HOST}"})),
    ],
)
def test_a_request_is_answered_or_refused(code: int, method: str, headers: dict[str, str]) -> None:
    assert asked(method, **headers) == code


@pytest.mark.parametrize(
    "host",
    ["evil.example:8321", "127.0.0.1", "127.0.0.1:80", "localhost:8321.evil.example", "[::1]:8321", "", "evil.example"],
)
def test_a_foreign_name_for_the_server_is_refused_whatever_else_is_right(host: str) -> None:
    """By DNS rebinding a foreign page is of the same origin, with its own name, and could have any cookie set."""
    assert asked("GET", "the-token", host=host, **with_(TICKET, TYPED)) == 421
    assert asked("GET", host=host, **with_(TICKET, OWN)) == 421
    assert asked("POST", host=host, **with_(TICKET, OWN_POST, {"origin": f"http://{host}"})) == 421


def test_each_name_of_the_server_is_its_own_origin() -> None:
    assert asked(host="LOCALHOST:8321", **with_(TICKET)) == 200
    assert asked("POST", host="localhost:8321", **with_(TICKET, OWN_POST)) == 403
    assert asked("POST", host="localhost:8321", **with_(TICKET, OWN_POST, {"origin": "http://localhost:8321"})) == 200


def test_the_token_lets_a_browser_in_when_a_person_follows_a_link() -> None:
    assert asked("GET", "the-token") == 303
    assert asked("GET", "the-token", **with_(TYPED)) == 303
    assert asked("GET", "the-token", **with_(LINK)) == 303
    for wrong in ("", "the-tokem", "the-token ", "the-ticket", "ë", "\ud800"):
        assert asked("GET", wrong) == 401
    # A page that guesses tokens in the background reads nothing, and gets no ticket.
    assert asked("GET", "the-token", **with_({"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"})) == 403
    assert asked("POST", "the-token", **with_(OWN_POST)) == 401
    assert asked("HEAD", "the-token") == 401


def test_the_token_that_the_browser_is_opened_with_lets_in_one_browser() -> None:
    verdict = judge(DOOR, "GET", {"host": HOST}, "once")
    assert verdict == Enter(spent=True)
    spent = replace(DOOR, once="")
    for token in ("once", ""):
        found = judge(spent, "GET", {"host": HOST}, token)
        assert isinstance(found, Refused)
        assert found.code == 401
    assert judge(spent, "GET", {"host": HOST}, "the-token") == Enter(spent=False)


def test_the_policy_allows_what_is_ours_and_nothing_inline() -> None:
    policy = dict(each.strip().split(" ", 1) for each in HEADERS["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert {policy[f"{kind}-src"] for kind in ("script", "style", "img", "connect")} == {"'self'"}
    assert {policy[each] for each in ("base-uri", "form-action", "frame-ancestors", "trusted-types")} == {"'none'"}
    assert policy["require-trusted-types-for"] == "'script'"
    assert "unsafe" not in HEADERS["Content-Security-Policy"]
