"""The one protobuf message that the sandbox reads."""

from __future__ import annotations

from rollout_lws.sandbox.wire import protobuf


def _field(number: int, value: bytes) -> bytes:
    return bytes([number << 3 | 2, len(value)]) + value


def test_a_namespace_is_read_from_protobuf_and_nothing_else_is() -> None:
    label = _field(1, b"team") + _field(2, b"a")
    raw = _field(1, _field(1, b"space") + _field(11, label)) + _field(2, b"") + _field(3, b"")
    types = _field(1, b"v1") + _field(2, b"Namespace")
    message = b"k8s\x00" + _field(1, types) + _field(2, raw) + b"\x18\x05"
    assert protobuf.namespace(message) == {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "space", "labels": {"team": "a"}},
    }
    assert protobuf.namespace(message.replace(b"Namespace", b"ConfigMap")) is None
    assert protobuf.namespace(message[:-9]) is None
    assert protobuf.namespace(b"{}") is None
