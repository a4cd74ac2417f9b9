"""What an answer to a gate's request says, and what stays said."""

from __future__ import annotations

import pytest

from rollout_lws.analysis.calls import WORDS, Call, Calls, Said, cleaned, is_reserved, said
from rollout_lws.analysis.criterion import Verdict

CALL = Call("POST", "/gate", fail_on=frozenset({409, 500}))


@pytest.mark.parametrize(
    ("code", "body", "expected"),
    [
        (200, b"", Said(Verdict.PASSED, "answered 200")),
        (204, b"", Said(Verdict.PASSED, "answered 204")),
        (200, b"ok", Said(Verdict.PASSED, "answered 200")),
        (200, b'{"choices": []}', Said(Verdict.PASSED, "answered 200")),
        (200, b'{"message": "fine"}', Said(Verdict.PASSED, "answered 200", "fine")),
        (200, b'{"result": "Passed"}', Said(Verdict.PASSED, "answered Passed")),
        (
            201,
            b'{"result": "Failed", "message": "3 are worse"}',
            Said(Verdict.FAILED, "answered Failed", "3 are worse"),
        ),
        (200, b'{"result": "Inconclusive"}', Said(Verdict.INCONCLUSIVE, "answered Inconclusive")),
        (409, b"", Said(Verdict.FAILED, "answered 409")),
        (500, b'{"message": "frozen"}', Said(Verdict.FAILED, "answered 500", "frozen")),
        (500, b'{"result": "Passed"}', Said(Verdict.FAILED, "answered 500")),
        (503, b'{"result": "Failed"}', Said(None, "answered 503")),
        (404, b'{"result": "Passed"}', Said(None, "answered 404")),
        (429, b'{"message": "later"}', Said(None, "answered 429", "later")),
        (302, b"", Said(None, "answered 302: a redirect is not followed")),
        (100, b"", Said(None, "answered 100")),
        *(
            (200, body, Said(None, "answered 200 with a result that is none of Passed, Failed, Inconclusive"))
            for body in (b'{"result": "passed"}', b'{"result": ""}', b'{"result": 1}', b'{"result": {"a": []}}')
        ),
        (200, b'{"result": "Pas', Said(None, "answered 200 with JSON that cannot be read")),
        (200, b'{"a":' * 100_000, Said(None, "answered 200 with JSON that cannot be read")),
        (503, b'{"result"', Said(None, "answered 503")),
        (200, b'["result", "Failed"]', Said(Verdict.PASSED, "answered 200")),
        (200, b"[" * 100_000, Said(Verdict.PASSED, "answered 200")),
        (200, b"\xff\x01", Said(Verdict.PASSED, "answered 200")),
        (200, b'\xef\xbb\xbf{"result": "Failed"}', Said(Verdict.FAILED, "answered Failed")),
        *(
            (200, body, Said(None, "answered 200 with JSON that cannot be read"))
            for body in ('{"result": "Failed"}'.encode("utf-16"), b'{"Result": "Failed"}', b'{"RESULT": "Passed"}')
        ),
        (200, b'{"message": {"a": 1}}', Said(Verdict.PASSED, "answered 200")),
    ],
)
def test_answers(code: int, body: bytes, expected: Said) -> None:
    assert said(CALL, code, body) == expected


def test_a_redirect_is_named() -> None:
    told = said(CALL, 307, b"", "http://169.254.169.254/\x1b[31m")
    assert told == Said(None, "answered 307: a redirect to http://169.254.169.254/ [31m is not followed")


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("a\nb\tc", "a b c"),
        ("\x1b[31mred\x07", "[31mred"),
        ("\u202eabc\u2028", "abc"),
        ("x" * 300, "x" * (WORDS - 1) + "…"),
        ("\n" * 10_000_000 + "x", ""),
    ],
)
def test_words_of_others_are_one_short_line(words: str, shown: str) -> None:
    assert cleaned(words) == shown


def test_headers_that_no_gate_sets() -> None:
    assert is_reserved("HOST")
    assert is_reserved("Impersonate-Extra-x")
    assert not is_reserved("x-team")


PASSED, FAILED = Said(Verdict.PASSED, "answered 200"), Said(Verdict.FAILED, "answered 500")
OPEN, ERROR = Said(Verdict.INCONCLUSIVE, "answered Inconclusive"), Said(None, "answered 503")


@pytest.mark.parametrize(
    ("rounds", "after"),
    [
        ([{"a": ERROR}, {"a": PASSED}], {"a": PASSED}),
        ([{"a": PASSED}, {"a": ERROR}], {"a": PASSED}),
        ([{"a": FAILED}, {"a": PASSED}], {"a": FAILED}),
        ([{"a": OPEN}, {"a": ERROR}], {"a": ERROR}),
        ([{"a": ERROR}, {"b": PASSED}], {"a": ERROR, "b": PASSED}),
        ([{}], {}),
    ],
)
def test_a_verdict_stays_and_an_error_does_not(rounds: list[dict[str, Said]], after: dict[str, Said]) -> None:
    calls = Calls(5.0)
    for number, heard in enumerate(rounds):
        calls = calls.after(15.0 * number, heard)
    assert (calls.answers, calls.began) == (after, 5.0)
    assert calls.failed == next((uid for uid, each in after.items() if each is FAILED), None)


def shown(*heard: Said) -> list[str]:
    """What is shown of a target that answers so, every 15 s; "" once it has decided."""
    calls, told = Calls(5.0), []
    for number, each in enumerate(heard):
        calls = calls.after(15.0 * number, {"a": each})
        told.append(calls.undecided["a"].lasting.why if "a" in calls.undecided else "")
    return told


BUSY, GONE = Said(None, "answered 503"), Said(None, "gave no answer in 10 s")


@pytest.mark.parametrize(
    ("heard", "told"),
    [
        ([BUSY] * 3, [BUSY] * 3),
        ([BUSY, GONE] * 10, [BUSY] * 20),
        ([Said(None, f"answered {number}") for number in range(20)], [Said(None, "answered 0")] * 20),
        ([BUSY, *[GONE] * 4, GONE, GONE], [BUSY] * 5 + [GONE] * 2),
        ([BUSY, GONE, GONE, BUSY, GONE, GONE, GONE], [BUSY] * 7),
        ([BUSY, *[OPEN] * 5], [BUSY] * 5 + [OPEN]),
    ],
)
def test_what_is_shown_lasts(heard: list[Said], told: list[Said]) -> None:
    assert shown(*heard) == [each.why for each in told]


@pytest.mark.parametrize("decided", [PASSED, FAILED])
def test_nothing_is_shown_of_a_target_that_has_decided(decided: Said) -> None:
    assert shown(BUSY, decided, BUSY) == ["answered 503", "", ""]
