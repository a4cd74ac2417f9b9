"""What every story calls by the same name."""

from __future__ import annotations

from datetime import UTC, datetime

from rollout_lws.api import keys, rollouts

NAMESPACE, NAME = "default", "llama"
ORIGIN = datetime(2026, 1, 1, tzinfo=UTC)
KEYS = keys()
ROLLOUTS = rollouts()
