"""Regular expressions that no router can take, and those that only some can."""

from __future__ import annotations

import pytest

from rollout_lws.api.expressions import unclosed

#: What RE2 or PCRE reads.
READ = {
    "empty": "",
    "groups": r"^/v1/(?:a|(b))(?P<name>c)(?<n>d)(?i)$",
    "escaped": r"\(\[\\",
    "a set of brackets": r"[()[]",
    "a set that begins with its end": r"[])][^](]",
    "an end outside of a set": r"a]",
    "an escaped end in a set": r"[\](]",
    "POSIX classes": r"[^[:space:])]+[[:alnum:](]+[[:^alpha:]_(]",
    "a POSIX class that is none": r"[[:a(]",
    "Unicode classes": r"[\p{Greek}\pL(]\p{^Lu}",
    "quoted": r"\Q([\E(a)",
    "quoted to the end": r"(a)\Q[(",
    "quoted in a set": r"[\Q]\E(]",
    "an empty quote before the end of a set": r"[\E])]",
    "a control character": r"\c[\c(",
    "possessive": r"(a)++",
    "atomic": r"(?>a)",
    "a conditional": r"(a)?(?(1)b|c)",
    "a branch reset": r"(?|(a)|(b))",
    "recursion": r"\((?:[^()]|(?R))*\)",
    "a comment": r"a(?#()b",
    "a comment to the end of the line": "(?ix)a # (\nb",
    "a callout": r'(?C"(")a',
    "a verb": r"(*MARK:()a",
    "an assertion by its name": r"(*pla:a(b))c",
    "nested sets": r"(?[[(]+[)]])",
}

NO_GROUP_END = 'the group that "(" begins at character {} does not end: add ")", or write "\\("'
NO_GROUP = '")" at character {} ends no group: remove it, or write "\\)"'
NO_SET_END = 'the set that "[" begins at character {} does not end: add "]", or write "\\["'

UNREAD = {
    "(": NO_GROUP_END.format(1),
    "(a(b)": NO_GROUP_END.format(1),
    "(a(b": NO_GROUP_END.format(3),
    r"(a\)": NO_GROUP_END.format(1),
    "(a[)]": NO_GROUP_END.format(1),
    r"(\Q)\E": NO_GROUP_END.format(1),
    "a)": NO_GROUP.format(2),
    "(a))(": NO_GROUP.format(4),
    "[(])": NO_GROUP.format(4),
    "[a": NO_SET_END.format(1),
    "a[]": NO_SET_END.format(2),
    "[^]": NO_SET_END.format(1),
    r"[a\]": NO_SET_END.format(1),
    "[[:alpha:]": NO_SET_END.format(1),
    "([a)": NO_SET_END.format(2),
}


@pytest.mark.parametrize("case", READ)
def test_what_some_router_reads_is_not_refused(case: str) -> None:
    assert unclosed(READ[case]) == ""


@pytest.mark.parametrize("expression", UNREAD)
def test_a_group_or_set_that_does_not_end_is_named(expression: str) -> None:
    assert unclosed(expression) == UNREAD[expression]


@pytest.mark.timeout(5)
def test_the_longest_value_is_read_in_a_moment() -> None:
    for part in ("[[:a", "(", r"[\Q", r"\Q", "[]", r"[\E", "[a", "(?a"):
        unclosed(part * (1024 // len(part)))
