"""A traffic meter: where requests go in a cluster, by weights and endpoints, and which fail or are cut.

It computes data planes exactly, as continuous flows: a story can state each version's share without any requests.
"""

from rollout_lws.sandbox.meter.client import Client
from rollout_lws.sandbox.meter.fleet import Cause
from rollout_lws.sandbox.meter.meter import TrafficMeter
from rollout_lws.sandbox.meter.records import NOWHERE, Cut, Failure

__all__ = ["NOWHERE", "Cause", "Client", "Cut", "Failure", "TrafficMeter"]
