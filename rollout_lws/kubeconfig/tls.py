"""TLS contexts: verification of the server, and the client certificate."""

from __future__ import annotations

import base64
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rollout_lws.kubeconfig.login import Certificate


def context(cluster: Mapping[str, Any], certificate: Certificate | None) -> ssl.SSLContext:
    """OSError or ValueError when a file or its content cannot be read."""
    authority = cluster.get("certificate-authority-data")
    made = ssl.create_default_context(
        cafile=None if authority else cluster.get("certificate-authority"),
        cadata=base64.b64decode(authority).decode() if authority else None,
    )
    if cluster.get("insecure-skip-tls-verify"):
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
    if certificate is not None:
        with _file(certificate.pem, certificate.path) as path, _file(certificate.key_pem, certificate.key_path) as key:
            made.load_cert_chain(path or "", key)
    return made


@contextmanager
def _file(content: str, path: str) -> Iterator[str | None]:
    """A path to a file with ``content``, otherwise ``path``: the ssl module reads certificates from files only."""
    if not content:
        yield path or None
        return
    # Only the owner can read mkstemp's files.
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(content)
        file.flush()
        yield file.name
