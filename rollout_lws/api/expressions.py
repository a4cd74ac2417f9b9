"""Regular expressions of HTTP matches, as far as no router can take them.

Routers differ in their syntax: RE2 (Envoy, Traefik and most others) and PCRE (NGINX) are the widest. What is said here
is invalid in both of them: a group or a set that does not end, or a group that was not begun.
"""

from __future__ import annotations

import re

# Quotes and escapes; \c of PCRE takes whatever character follows it.
_QUOTED = r"\\Q.*?(?:\\E|\Z) | \\c. | \\."
# A ] that comes first is a member of the set; PCRE overlooks an empty quote before it.
_FIRST = r"(?:\\Q\\E|\\E)* \^? (?:\\Q\\E|\\E)* \]?"
_TOKEN = re.compile(
    rf"""
    {_QUOTED}
    | (?> \[ {_FIRST} (?: {_QUOTED} | \[:\^?[a-zA-Z]*:\] | [^\]] )* ) \]
    | (?P<own> \(\* | \(\? (?: [\#C\[] | [a-zA-Z^-]*x ) )
    | (?P<set> \[ )
    | (?P<begins> \( )
    | (?P<ends> \) )
    """,
    re.DOTALL | re.VERBOSE,
)


def unclosed(expression: str) -> str:
    """What keeps RE2 and PCRE alike from reading an expression, with the way out; "" where one of them may read it.
    Characters are counted from 1.
    """
    begun: list[int] = []
    for token in _TOKEN.finditer(expression):
        at = token.start() + 1
        match token.lastgroup:
            case "own":
                # Comments, callouts and the like: only PCRE has them, and what follows is read in ways of their own.
                return ""
            case "set":
                return f'the set that "[" begins at character {at} does not end: add "]", or write "\\["'
            case "begins":
                begun.append(at)
            case "ends":
                if not begun:
                    return f'")" at character {at} ends no group: remove it, or write "\\)"'
                begun.pop()
    if begun:
        return f'the group that "(" begins at character {begun[-1]} does not end: add ")", or write "\\("'
    return ""
