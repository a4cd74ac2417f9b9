"""Issues a CA and a server certificate that exist only in this process's memory.

Each replica has its own, so no private key is shared: no Secret is read or written, and a pod's key disappears with the
pod. ``Rotation`` says when to replace a certificate, and in which order, so that only trusted ones are served.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = timedelta(days=30)
#: An API server's clock may be behind ours.
_SKEW = timedelta(hours=1)
#: Identifies our CAs in a bundle.
ORGANISATION = "rollout-lws guard"


@dataclass(frozen=True, slots=True)
class Identity:
    """PEM of a CA's certificate, of the server certificate that it signed, and of the server's key."""

    authority: bytes
    certificate: bytes
    key: bytes
    since: datetime
    until: datetime

    @property
    def renewed_at(self) -> datetime:
        """When the next one is issued: well before expiry."""
        return self.since + (self.until - self.since) * 2 / 3


def issue(names: Sequence[str], now: datetime) -> Identity:
    """A new CA and a certificate for a server that is reachable as ``names``, host names or addresses."""
    until = now + LIFETIME
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    serial = x509.random_serial_number()
    organisation = x509.NameAttribute(NameOID.ORGANIZATION_NAME, ORGANISATION)
    # With equal names, clients would try each CA in turn.
    issuer = x509.Name([organisation, x509.NameAttribute(NameOID.COMMON_NAME, f"{ORGANISATION} {serial:040x}")])
    subject = x509.Name([organisation, x509.NameAttribute(NameOID.COMMON_NAME, names[0][:64])])
    signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    authority = (
        _dated(now, until, serial)
        .subject_name(issuer)
        .issuer_name(issuer)
        .public_key(authority_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage(signs=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    certificate = (
        _dated(now, until, x509.random_serial_number())
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([general_name(each) for each in names]), critical=False)
        .add_extension(signer, critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    return Identity(
        authority.public_bytes(serialization.Encoding.PEM),
        certificate.public_bytes(serialization.Encoding.PEM),
        private_pem(key),
        now,
        until,
    )


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Unencrypted PEM."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _dated(now: datetime, until: datetime, serial: int) -> x509.CertificateBuilder:
    return x509.CertificateBuilder().serial_number(serial).not_valid_before(now - _SKEW).not_valid_after(until)


def usage(*, signs: bool) -> x509.KeyUsage:
    """Key usage of a CA's key, or of a server's or client's."""
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def general_name(name: str) -> x509.GeneralName:
    """A server's subject alternative name: a host name or an address."""
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


#: API servers see a new bundle by their watch within a second; the rest is for one that has to restart its watch.
GRACE = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Rotation:
    """``serving`` is in use; ``next`` replaces it GRACE after every bundle contained it, at ``published``."""

    serving: Identity
    next: Identity | None = None
    published: datetime | None = None

    @property
    def authorities(self) -> tuple[bytes, ...]:
        """The CAs that every bundle must contain."""
        return (self.serving.authority, *((self.next.authority,) if self.next is not None else ()))

    @property
    def wake_at(self) -> datetime | None:
        """When the next action is due without any change; None while waiting for a bundle."""
        if self.next is None:
            return self.serving.renewed_at
        return None if self.published is None else self.published + GRACE

    def needs_next(self, now: datetime) -> bool:
        return self.next is None and now >= self.serving.renewed_at

    def trusted(self, now: datetime) -> Rotation:
        """Call when every bundle contains all ``authorities``."""
        return self if self.next is None or self.published is not None else replace(self, published=now)

    def turned(self, now: datetime) -> Rotation:
        """With the next certificate serving, once it may."""
        due = self.published is not None and now >= self.published + GRACE
        return Rotation(self.next) if self.next is not None and due else self
