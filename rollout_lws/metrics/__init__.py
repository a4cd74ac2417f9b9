"""What a running controller tells Prometheus; every name of ours starts with ``rollout_lws_``.

``docs/metrics.md`` lists them, and a test holds the list against what is exported.
"""

from rollout_lws.metrics.registry import CONTENT_TYPE, Metrics

__all__ = ["CONTENT_TYPE", "Metrics"]
