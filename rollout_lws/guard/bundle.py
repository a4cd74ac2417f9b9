"""The caBundle of webhooks that several replicas serve: each has an authority of its own in it."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from datetime import datetime

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from rollout_lws.guard.certificates import ORGANISATION

#: Authorities of ours in a bundle. Every start of a process adds one, and only their end takes them out again.
LIMIT = 32


def merged(current: str, own: Sequence[bytes], now: datetime) -> str:
    """The bundle (base64 of PEM, as objects have it) with all authorities of ``own`` in it, without those that have
    expired, and of ours without the oldest beyond LIMIT. ``current`` itself when nothing changes. What others have put
    there stays.
    """
    before = _certificates(current)
    mine = [x509.load_pem_x509_certificate(each) for each in own]
    there = {each.public_bytes(Encoding.DER): each for each in (*before, *mine) if each.not_valid_after_utc > now}
    needed = {each.public_bytes(Encoding.DER) for each in mine}
    ours = sorted(
        (raw for raw, each in there.items() if _is_ours(each) and raw not in needed),
        key=lambda raw: there[raw].not_valid_before_utc,
    )
    for raw in ours[: max(0, len(ours) + len(needed) - LIMIT)]:
        del there[raw]
    if [*there.values()] == before:
        return current
    return base64.b64encode(b"".join(each.public_bytes(Encoding.PEM) for each in there.values())).decode()


def has(current: str, authority: bytes) -> bool:
    """Whether who trusts this bundle trusts ``authority``."""
    return x509.load_pem_x509_certificate(authority) in _certificates(current)


def _certificates(bundle: str) -> list[x509.Certificate]:
    """Of something that is no bundle nothing can be kept."""
    try:
        return x509.load_pem_x509_certificates(base64.b64decode(bundle, validate=True))
    except ValueError:
        return []


def _is_ours(certificate: x509.Certificate) -> bool:
    return any(
        each.value == ORGANISATION for each in certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    )
