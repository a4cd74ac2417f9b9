"""PromQL of users: placeholders are replaced, the syntax is checked, and each selector is confined to a namespace."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from promql_parser import Expr, MatchOp, MatrixSelector, StringLiteral, VectorSelector, parse, transform, walk

_PLACE = re.compile(r"\{\{\s*([A-Za-z.]+)\s*\}\}")
#: The name that a selector begins with, as the parser prints it.
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")


#: What a query may have of what makes its tree deep: the parser takes the square of the depth, and more.
_MOST_OPERATORS = 32
_OPERATOR = re.compile(r"[(\[+*/%^<>-]|==|!=|\b(?:and|or|unless|atan2)\b", re.IGNORECASE)
#: Regular expressions of matchers, which the parser compiles: how many, how long in all, and what makes them large.
_EXPRESSION = re.compile(r"[=!]~\s*(\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|`[^`]*`)")
_LARGE = re.compile(r"\{\s*\d|\\[pP]")
_MOST_EXPRESSIONS = 16
#: Characters of a query whose placeholders are replaced.
_LONGEST = 16_384


class NotPromQL(ValueError):
    """The text cannot be asked; the message says why."""


@dataclass(frozen=True, slots=True)
class Places:
    """What placeholders stand for: names of pods, and the ``window`` in whole seconds."""

    namespace: str
    new: tuple[str, ...]
    stable: tuple[str, ...]
    window: int
    pod_label: str = "pod"


_TEXTS: Mapping[str, Callable[[Places], str]] = {
    "new": lambda places: _pods(places, places.new),
    "stable": lambda places: _pods(places, places.stable),
    "window": lambda places: f"{places.window}s",
    "namespace": lambda places: places.namespace,
    "pods.new": lambda places: _either(places.new),
    "pods.stable": lambda places: _either(places.stable),
}
_EXAMPLE = Places("default", ("llama-0",), ("llama-1",), 300)


@lru_cache(maxsize=1024)
def problem(query: str) -> str:
    """Why a user's query cannot be asked; "" if it can."""
    try:
        confined(expanded(query, _EXAMPLE), {"namespace": _EXAMPLE.namespace})
    except NotPromQL as error:
        return str(error)
    return ""


def expanded(query: str, places: Places) -> str:
    """The query with its placeholders replaced. Raises NotPromQL for one that there is not, or a query too deep."""

    def text(found: re.Match[str]) -> str:
        known = _TEXTS.get(found[1])
        if known is None:
            names = ", ".join(f"{{{{{name}}}}}" for name in _TEXTS)
            raise NotPromQL(f"there is no placeholder {found[0]}: use one of {names}")
        return known(places)

    expressions = _EXPRESSION.findall(query)
    if len(expressions) > _MOST_EXPRESSIONS:
        raise NotPromQL(f"it has {len(expressions)} regular expressions, of at most {_MOST_EXPRESSIONS}")
    large = next((each for each in expressions if _LARGE.search(_PLACE.sub("", each))), None)
    if large is not None:
        raise NotPromQL(f"{large} takes long to compile: do without counted repetitions and Unicode's classes")
    count = len(_OPERATOR.findall(query))
    if count > _MOST_OPERATORS:
        raise NotPromQL(f"it has {count} operators and brackets, of at most {_MOST_OPERATORS}: use a recording rule")
    found = _PLACE.sub(text, query)
    if len(found) > _LONGEST:
        raise NotPromQL(f"it has {len(found)} characters with the names of its pods, of at most {_LONGEST}")
    return found


def names_stable(query: str) -> bool:
    """Whether it asks for the stable version's pods."""
    return any(found[1] in ("stable", "pods.stable") for found in _PLACE.finditer(query))


def _parsed(query: str) -> Expr:
    try:
        found: Expr = parse(query)
    except ValueError as error:
        raise NotPromQL(f"not PromQL: {error}") from error
    except BaseException as error:
        # Where it has a mistake, as for durations without end, the parser raises what is no Exception.
        if type(error).__name__ != "PanicException":
            raise
        raise NotPromQL("not PromQL: the parser cannot read it") from error
    if isinstance(found, MatrixSelector | StringLiteral):
        raise NotPromQL("it is no number: wrap a range in a function such as rate(), and strings in none")
    return found


def confined(query: str, matchers: Mapping[str, str]) -> str:
    """An expanded query, of whose selectors each asks for these values of labels in addition. Raises NotPromQL."""

    def with_matchers(node: Expr) -> Expr | None:
        return _narrowed(node, matchers) if isinstance(node, VectorSelector) else None

    text = transform(_parsed(query), post_visit=with_matchers).prettify()
    open_to_all = []

    def look(node: Expr) -> None:
        if isinstance(node, VectorSelector):
            equal = (each for each in node.matchers.matchers if each.op == MatchOp.Equal)
            known = {(each.name, each.value) for each in equal}
            if not matchers.items() <= known or node.matchers.or_matchers:
                open_to_all.append(node.prettify())

    walk(_parsed(text), look)
    if open_to_all:
        raise NotPromQL(f"{open_to_all[0]} cannot be confined to {selector(matchers.items())}")
    return text


def _narrowed(node: VectorSelector, matchers: Mapping[str, str]) -> Expr:
    """The parser's own print of one selector begins with its name or its braces."""
    if node.matchers.or_matchers:
        raise NotPromQL("alternatives of matchers (or) are not Prometheus': write one selector for each")
    text, more = node.prettify(), selector(matchers.items())[1:-1]
    if not more:
        return node
    name = found[0] if (found := _NAME.match(text)) is not None else ""
    rest = text[len(name) :]
    inside, after = (f"{more},", rest[1:]) if rest.startswith("{") else (more, f"}}{rest}")
    narrowed: Expr = _parsed(f"{name}{{{inside}{after}")
    return narrowed


def selector(equal: Iterable[tuple[str, str]], either: Mapping[str, Iterable[str]] | None = None) -> str:
    """Matchers in braces: of labels that are equal to a value, and of those that are one of several."""
    fixed = [f"{label}={quoted(value)}" for label, value in equal]
    free = [f"{label}=~{quoted(_one_of(values))}" for label, values in (either or {}).items()]
    return f"{{{','.join((*fixed, *free))}}}"


def quoted(text: str) -> str:
    """A PromQL string; JSON's escapes are among its own."""
    return json.dumps(text, ensure_ascii=False)


def _pods(places: Places, names: tuple[str, ...]) -> str:
    return selector((("namespace", places.namespace),), {places.pod_label: names})[1:-1]


def _either(names: tuple[str, ...]) -> str:
    """Inside of a string that the user has quoted."""
    return quoted(_one_of(names))[1:-1]


def _one_of(names: Iterable[str]) -> str:
    """A regular expression of names; of none it fits no series, not those without the label."""
    return "|".join(re.sub(r"[^A-Za-z0-9_:-]", lambda found: f"[{found[0]}]", name) for name in names) or "none of them"
