"""How pip reaches packages on this machine, for a builder that shall reach them as well."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

#: Certificates of authorities are here in the base, and in one of these on the machine.
_CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
_BUNDLES = (_CERTIFICATES, "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem")
_BUNDLE_VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
#: What pip is told of how it gets to packages; all else is the Containerfile's business.
_REACHING = {
    *("index-url", "extra-index-url", "find-links", "no-index", "trusted-host", "proxy", "client-cert", "cert"),
    *("timeout", "default-timeout", "retries"),
}


def mounts(scratch: Path) -> list[tuple[str, str]]:
    """What a pip in a builder is given so that it reaches what the machine's own pip does: files and where they go.

    A builder would keep variables in the image, so all that pip is told goes into one file of its own.
    """
    asked = [sys.executable, "-m", "pip", "config", "list"]
    settings = pip_settings(subprocess.run(asked, capture_output=True, text=True).stdout)
    named = [settings.get("global", {}).pop("cert", ""), *map(os.environ.get, _BUNDLE_VARIABLES), *_BUNDLES]
    mounts = [(each, _CERTIFICATES) for each in named if each and Path(each).is_file()][:1]
    file = scratch / "pip.conf"
    sections = ([f"[{name}]", *(f"{key} = {value}" for key, value in rows.items())] for name, rows in settings.items())
    file.write_text("".join(f"{line}\n" for lines in sections for line in lines))
    mounts.append((str(file), "/etc/pip.conf"))
    words = (word for rows in settings.values() for value in rows.values() for word in value.split())
    return [*mounts, *((word, word) for word in sorted(set(words)) if word.startswith("/") and Path(word).exists())]


def pip_settings(told: str) -> dict[str, dict[str, str]]:
    """How packages are reached, by section, out of what `pip config list` prints.

    Variables go before files, as they do for pip.
    """
    settings: dict[str, dict[str, str]] = {}
    for line in told.splitlines():
        name, _, value = line.partition("=")
        section, _, key = name.rpartition(".")
        if key in _REACHING:
            settings.setdefault(section, {})[key] = str(ast.literal_eval(value)).replace("\n", "\n  ")
    variables = settings.pop(":env:", {})
    for rows in settings.values():
        for key in variables.keys() & rows.keys():
            del rows[key]
    settings.setdefault("global", {}).update(variables)
    return settings
