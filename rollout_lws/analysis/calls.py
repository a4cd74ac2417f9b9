"""Requests whose answers decide: what is asked, what an answer says, and what has been answered so far.

An answer of 2xx passes, unless its JSON body decides itself. Whatever is neither that nor a code that the gate names is
no verdict: it is asked again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import msgspec

from rollout_lws.analysis.criterion import Verdict
from rollout_lws.analysis.ledger import LASTING

#: Bytes of an answer that are read; a longer one is no verdict, since what decides may stand at its end.
LONGEST = 64 * 1024
#: Characters of an answer's words that are kept.
WORDS = 256
_MOVED = range(300, 400)
_SETTLED = (Verdict.PASSED, Verdict.FAILED)
#: Headers that say where a request goes, where it ends, what it is encoded in, or who sends it.
_RESERVED = frozenset(
    {
        "accept-encoding",
        "authorization",
        "connection",
        "content-encoding",
        "content-length",
        "cookie",
        "expect",
        "forwarded",
        "host",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "via",
    }
)
_RESERVED_PREFIXES = ("impersonate-", "proxy-", "sec-", "x-forwarded-", "x-remote-")


def is_reserved(header: str) -> bool:
    """Whether a gate may not set it. Behind the API server's proxy these are the controller's own credentials."""
    name = header.lower()
    return name in _RESERVED or name.startswith(_RESERVED_PREFIXES)


@dataclass(frozen=True, slots=True)
class Call:
    """One request. ``service`` is the Service that is asked, "" for each pod; ``port`` is the name or number of its
    port, "" for its only one. ``seconds`` is how long an answer may take, ``fail_on`` the codes that fail.
    """

    method: str
    path: str
    service: str = ""
    port: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    body: str | None = None
    seconds: float = 10.0
    fail_on: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Said:
    """What came of one request: a verdict, None for an error. ``why`` is ours and ``words`` are those of the answer, ""
    if it had none.
    """

    verdict: Verdict | None
    why: str
    words: str = ""

    @property
    def sentence(self) -> str:
        return f"{self.why}: {self.words}" if self.words else self.why


class _Body(msgspec.Struct, frozen=True):
    """``result`` and ``message`` are JSON, empty where there is none."""

    result: msgspec.Raw = msgspec.Raw()
    message: msgspec.Raw = msgspec.Raw()


_bodies = msgspec.json.Decoder(_Body)
_objects = msgspec.json.Decoder(dict[str, msgspec.Raw])
_texts = msgspec.json.Decoder(str)


def said(call: Call, code: int, body: bytes, location: str = "") -> Said:
    """What an answer says; ``body`` is all of it, ``location`` the header of a redirect."""
    told = _told(body)
    words = cleaned(_text(told.message)) if told is not None else ""
    if code in call.fail_on:
        return Said(Verdict.FAILED, f"answered {code}", words)
    if code in _MOVED:
        where = f" to {cleaned(location)}" if location else ""
        return Said(None, f"answered {code}: a redirect{where} is not followed")
    if not 200 <= code < 300:
        return Said(None, f"answered {code}", words)
    if told is None:
        return Said(None, f"answered {code} with JSON that cannot be read")
    if not bytes(told.result):
        return Said(Verdict.PASSED, f"answered {code}", words)
    result = _text(told.result)
    if result not in set(Verdict):
        return Said(None, f"answered {code} with a result that is none of {', '.join(Verdict)}", words)
    return Said(Verdict(result), f"answered {result}", words)


def cleaned(text: str) -> str:
    """On one line and without control characters, at most ``WORDS`` characters of it."""
    shown = " ".join("".join(each if each.isprintable() else " " for each in text[: 4 * WORDS]).split())
    return shown if len(shown) <= WORDS else f"{shown[: WORDS - 1]}…"


def _told(body: bytes) -> _Body | None:
    """Nothing, of what is no JSON; None of what is broken, since what cannot be read may decide."""
    try:
        text = body.decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        # JSON of another encoding begins with the mark of its order, or has zeros in it.
        return None if b"\0" in body or body.startswith((b"\xff\xfe", b"\xfe\xff")) else _Body()
    if not text.startswith("{"):
        return _Body()
    try:
        members = _objects.decode(text)
        odd = any(name != name.lower() and name.lower() == "result" for name in members)
        return None if odd else _bodies.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


def _text(raw: msgspec.Raw) -> str:
    """The text of a member, "" for anything else."""
    try:
        return _texts.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""


@dataclass(frozen=True, slots=True)
class Undecided:
    """A target that has neither passed nor failed: it said ``last``, the same since the epoch second ``since``.
    ``lasting`` is what it said first, until another answer was the same for LASTING seconds: a status that told each
    one would be written in each round.
    """

    lasting: Said
    last: Said
    since: float

    def after(self, now: float, heard: Said) -> Undecided:
        """With one more answer."""
        same = (heard.verdict, heard.why) == (self.last.verdict, self.last.why)
        since = self.since if same else now
        return Undecided(heard if now - since >= LASTING else self.lasting, heard, since)


@dataclass(frozen=True, slots=True)
class Calls:
    """What has been answered so far: the last answer of each target, by its uid, and what those say for a while that
    have not decided. ``began`` is the epoch second of the first round's end.
    """

    began: float
    answers: Mapping[str, Said] = field(default_factory=dict)
    undecided: Mapping[str, Undecided] = field(default_factory=dict)

    def after(self, now: float, heard: Mapping[str, Said]) -> Calls:
        """With one more round. A verdict of a target that passed or failed stays."""
        answers = {**self.answers, **{uid: each for uid, each in heard.items() if not self.settled(uid)}}
        undecided = {
            uid: before.after(now, each) if (before := self.undecided.get(uid)) else Undecided(each, each, now)
            for uid, each in heard.items()
            if answers[uid].verdict not in _SETTLED
        }
        return replace(self, answers=answers, undecided=undecided)

    def settled(self, uid: str) -> bool:
        """Whether a target need not be asked again."""
        known = self.answers.get(uid)
        return known is not None and known.verdict in _SETTLED

    @property
    def failed(self) -> str | None:
        """The uid of the first target that has failed the version; None if none has."""
        return next((uid for uid, each in self.answers.items() if each.verdict is Verdict.FAILED), None)
