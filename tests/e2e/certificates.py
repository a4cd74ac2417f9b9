"""Throw-away certificates: a control plane's every door is shut but to whoever holds a key of this one run.

Users and groups are the common name and the organisations of a client certificate, as Kubernetes reads them.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from rollout_lws.admission.certificates import general_name, private_pem, usage

#: Longer than any run, and shorter than anybody could want to keep it.
_LIFETIME = datetime.timedelta(days=2)
#: The clocks of two containers on one machine may differ by a little.
_SKEW = datetime.timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate and its private key, both PEM."""

    certificate: bytes
    key: bytes


@dataclass(frozen=True, slots=True)
class KeyPair:
    """The two halves of a signing key, both PEM: service-account tokens are signed by one, checked by the other."""

    private: bytes
    public: bytes


class Authority:
    """A certificate authority that lives as long as this object: nothing of its key is ever written down."""

    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._certificate = self._sign(
            self._name,
            self._key.public_key(),
            (x509.BasicConstraints(ca=True, path_length=0), True),
            (usage(signs=True), True),
        )

    @property
    def certificate(self) -> bytes:
        """PEM of the authority's own certificate, for those who are to trust it."""
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    def server(self, *names: str) -> Certificate:
        """For a server that is reached by any of ``names``, host names or IP addresses; the first one names it."""
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
        reached = x509.SubjectAlternativeName([general_name(name) for name in names])
        return self._issue(subject, ExtendedKeyUsageOID.SERVER_AUTH, (reached, False))

    def client(self, user: str, groups: Sequence[str] = ()) -> Certificate:
        """For ``user`` as a member of ``groups``."""
        organisations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        subject = x509.Name([*organisations, x509.NameAttribute(NameOID.COMMON_NAME, user)])
        return self._issue(subject, ExtendedKeyUsageOID.CLIENT_AUTH)

    def _issue(
        self, subject: x509.Name, purpose: x509.ObjectIdentifier, *extensions: tuple[x509.ExtensionType, bool]
    ) -> Certificate:
        key = ec.generate_private_key(ec.SECP256R1())
        signed = self._sign(
            subject,
            key.public_key(),
            (x509.BasicConstraints(ca=False, path_length=None), True),
            (x509.ExtendedKeyUsage([purpose]), False),
            *extensions,
        )
        return Certificate(signed.public_bytes(serialization.Encoding.PEM), private_pem(key))

    def _sign(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePublicKey,
        *extensions: tuple[x509.ExtensionType, bool],
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _SKEW)
            .not_valid_after(now + _LIFETIME)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        for extension, critical in extensions:
            builder = builder.add_extension(extension, critical)
        return builder.sign(self._key, hashes.SHA256())


def signing_key() -> KeyPair:
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return KeyPair(private_pem(key), public)
