"""Values of HTTP headers."""

from __future__ import annotations

import re

#: RFC 9110, 5.5: of what Latin-1 has, no control characters but tabs.
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


def is_value(text: str) -> bool:
    """Whether ``text`` may be the value of a header. HTTP libraries refuse any other one, and some of them quote it."""
    return _VALUE.fullmatch(text) is not None
