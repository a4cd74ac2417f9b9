"""How Traefik's ingress-nginx provider differs from ingress-nginx in what a canary Ingress is for.

It is for every place of the namespace whose Service an Ingress has at the canary's place as well, and it is ignored
while its own Service has no ready endpoint (Traefik v3.7, pkg/provider/kubernetes/ingress-nginx/build.go).
"""

from __future__ import annotations

from rollout_lws.objects.resources import ENDPOINT_SLICES, INGRESSES
from rollout_lws.sandbox.meter.client import Client
from rollout_lws.sandbox.meter.nginx import Place, is_canary, services
from rollout_lws.sandbox.meter.seen import Object, Seen


def of_the_service(seen: Seen, client: Client, canary: Object, place: Place, service: str) -> str:  # noqa: ARG001 - a Canary
    """To Traefik."""
    ordinary = (each for _, each in seen.list(INGRESSES, client.namespace) if not is_canary(each))
    shared = {at for each in ordinary for at, to in services(each).items() if to == service}
    found = next((to for at, to in services(canary).items() if at in shared), "")
    return found if _has_endpoints(seen, client.namespace, found) else ""


def _has_endpoints(seen: Seen, namespace: str, service: str) -> bool:
    return any(each["service"] == service and each["uids"] for _, each in seen.list(ENDPOINT_SLICES, namespace))
