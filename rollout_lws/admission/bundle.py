"""The caBundle of webhooks that several replicas serve: each replica adds its own CA, and backs off from a writer that
removes it each time: two that overwrite each other immediately never stop.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from rollout_lws.admission.certificates import ORGANISATION

#: Our CAs in a bundle. Every start of a process adds one, and only expiry removes it.
LIMIT = 32
#: The limit for restored CAs: with a lower one, replicas would push out each other's forever.
MOST = 128
#: Our clock may be ahead of the clock of the replica that added a CA.
_MARGIN = timedelta(days=1)
#: First and longest wait before a removed CA is restored, in seconds.
FIRST, LONGEST = 1.0, 300.0
#: A CA that stayed for so many seconds was not part of a write conflict.
STAYED = 600.0


def merged(current: str, own: Sequence[bytes], now: datetime, known: Collection[bytes] = ()) -> str:
    """The bundle (base64 of PEM, as in the object) with all CAs of ``own``; ``current`` itself if it has them already.

    Adding a new CA removes those expired for a day, and our oldest ones beyond LIMIT. Restoring CAs of ``known``, which
    have been there before, skips that; only MOST limits it. Other writers' CAs stay.
    """
    mine = {each.public_bytes(Encoding.DER): each for each in map(x509.load_pem_x509_certificate, own)}
    there = {each.public_bytes(Encoding.DER): each for each in _certificates(current)}
    if mine.keys() <= there.keys():
        return current
    back = missing(current, own) <= {*known}
    if not back:
        there = {raw: each for raw, each in there.items() if each.not_valid_after_utc > now - _MARGIN or raw in mine}
    there |= mine
    ours = sorted(
        (raw for raw, each in there.items() if _is_ours(each) and raw not in mine),
        key=lambda raw: there[raw].not_valid_before_utc,
    )
    for raw in ours[: max(0, len(ours) + len(mine) - (MOST if back else LIMIT))]:
        del there[raw]
    return base64.b64encode(b"".join(each.public_bytes(Encoding.PEM) for each in there.values())).decode()


def missing(current: str, own: Sequence[bytes]) -> set[bytes]:
    """Those of ``own`` that this bundle does not trust."""
    return {each for each in own if not has(current, each)}


def has(current: str, authority: bytes) -> bool:
    """Whether this bundle trusts ``authority``."""
    return x509.load_pem_x509_certificate(authority) in _certificates(current)


def _certificates(bundle: str) -> list[x509.Certificate]:
    """Empty for a value that is no valid bundle: it has nothing to keep."""
    try:
        return x509.load_pem_x509_certificates(base64.b64decode(bundle, validate=True))
    except ValueError:
        return []


def _is_ours(certificate: x509.Certificate) -> bool:
    return any(
        each.value == ORGANISATION for each in certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    )


@dataclass(frozen=True, slots=True)
class Backoff:
    """``pause`` is the last wait, ``back`` when the CA was last restored, ``due`` when it may be restored again, None
    while it is there. All in seconds of a monotonic clock.
    """

    pause: float = 0.0
    back: float | None = None
    due: float | None = None

    def vanished(self, now: float, jitter: float) -> Backoff:
        """``jitter``, from 0 to 1, extends the wait by up to half, so that replicas do not write at the same moment."""
        if self.due is not None:
            return self
        fought = self.back is not None and now - self.back < STAYED
        pause = min(LONGEST, max(FIRST, 2 * self.pause)) if fought else FIRST
        return Backoff(pause, self.back, now + pause * (1 + jitter / 2))

    def put_back(self, now: float) -> Backoff:
        return replace(self, back=now, due=None)

    def there(self) -> Backoff:
        """The CA is in the bundle, whichever writer added it."""
        return self if self.due is None else replace(self, due=None)
