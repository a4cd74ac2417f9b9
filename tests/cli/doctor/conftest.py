"""Worlds of doctor's stories run in virtual time, as those of releases do."""

from tests.scenarios.conftest import pace, world

__all__ = ["pace", "world"]
