"""The target cluster and user: the values of kubectl's global flags, as plain data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """Cluster, namespace, API group and user of a command; None where the kubeconfig or the cluster decides.
    ``request_timeout`` is in seconds.
    """

    namespace: str | None = None
    context: str | None = None
    kubeconfig: str | None = None
    impersonate: str | None = None
    request_timeout: float | None = None
    api_group: str | None = None
    impersonate_groups: tuple[str, ...] = ()
    impersonate_uid: str | None = None
    cluster: str | None = None
    user: str | None = None
    server: str | None = None
    token: str | None = None
    username: str | None = None
    password: str | None = None
    certificate_authority: str | None = None
    client_certificate: str | None = None
    client_key: str | None = None
    tls_server_name: str | None = None
    insecure_skip_tls_verify: bool | None = None
