"""Signs a request as Standard Webhooks says: https://www.standardwebhooks.com."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from datetime import datetime

from standardwebhooks import Webhook

PREFIX = "whsec_"
#: Bytes of a key, at least and at most.
SHORTEST, LONGEST = 24, 64


def key(text: str) -> bytes:
    """The bytes of a key as it is written, ``whsec_`` and base64. ValueError, without the key in it, for any other."""
    if not text.startswith(PREFIX):
        raise ValueError(f"does not begin with {PREFIX}")
    try:
        found = base64.b64decode(text.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(f"is no base64 after {PREFIX}") from None
    if not SHORTEST <= len(found) <= LONGEST:
        raise ValueError(f"has {len(found)} bytes, and {SHORTEST} to {LONGEST} are asked for")
    return found


def headers(keys: Sequence[bytes], identifier: str, at: datetime, body: bytes) -> dict[str, str]:
    """The headers of a request that is sent at ``at``, with one signature a key; the signature is left out without."""
    signed = {"webhook-id": identifier, "webhook-timestamp": str(int(at.timestamp()))}
    if keys:
        text = body.decode()
        signed["webhook-signature"] = " ".join(Webhook(each).sign(identifier, at, text) for each in keys)
    return signed
