"""The controller's Prometheus metrics; all own names start with ``rollout_lws_``.

``docs/metrics.md`` lists them, and a test compares the list with the exported names.
"""

from rollout_lws.metrics.registry import CONTENT_TYPE, Metrics

__all__ = ["CONTENT_TYPE", "Metrics"]
