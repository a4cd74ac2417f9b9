"""JSON is spelled as Go spells it, for Kubernetes compares some of it by its bytes."""

from __future__ import annotations

import pytest

from rollout_lws.objects.go_json import encoded, escaped

#: What Go 1.26's encoding/json makes of a value, recorded.
SPELLED = (
    ("a && b", b'"a \\u0026\\u0026 b"'),
    ("<x> 2>&1", b'"\\u003cx\\u003e 2\\u003e\\u00261"'),
    ("\u2027\u2028\u2029\u202a", '"\u2027\\u2028\\u2029\u202a"'.encode()),
    ("\x00\x07\b\t\n\x0b\f\r\x1f\x7f", b'"\\u0000\\u0007\\b\\t\\n\\u000b\\f\\r\\u001f\x7f"'),
    ('"\\/', b'"\\"\\\\/"'),
    ("ä😀", '"ä😀"'.encode()),
    (
        {"b": [1, 2**53 + 1, True, None], "a": {"z": "", "Z": "", "ä": ""}},
        '{"a":{"Z":"","z":"","ä":""},"b":[1,9007199254740993,true,null]}'.encode(),
    ),
)


@pytest.mark.parametrize(("value", "document"), SPELLED)
def test_a_value_is_spelled_as_go_spells_it(value: object, document: bytes) -> None:
    assert encoded(value) == document


@pytest.mark.parametrize("document", [document for _, document in SPELLED])
def test_what_is_escaped_already_stays_as_it_is(document: bytes) -> None:
    assert escaped(document) == document
