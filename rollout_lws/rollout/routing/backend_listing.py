"""The new version's backend in the routes before its first share.

Gateways whose proxies learn of routes and of backends separately (Contour) fail requests while a proxy knows the share
of a backend that it does not know yet. So routes name the backend with weight 0 from the release's first writes on,
while the new version's groups load.
"""

from __future__ import annotations

from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.routing.routing_preflight import barred_route
from rollout_lws.rollout.routing.weights import share_of_step
from rollout_lws.traffic.routers import routers
from rollout_lws.traffic.split import LISTED


def list_backend(d: Draft) -> Draft:
    """Writes the backend into the routes at the release's begin. A route that cannot take it then, or loses it again,
    gets it before the share (see ``route``).
    """
    facts, steps = d.o.routing, range(1, len(d.strategy.steps) + 1)
    if facts is None or facts.waits or d.o.batch_release is not None or not d.on_record:
        return d
    if not any(share_of_step(d, index).reaches_new for index in steps):
        return d
    unlisted = [each for each in routers(facts) if each.state.unlisted]
    if any(each.state.missing or each.state.unused or barred_route(d, each, LISTED) for each in unlisted):
        return d
    for each in unlisted:
        d = d.write(each.apply(LISTED, "the new version's backend, without requests yet", checked=True))
    return d
