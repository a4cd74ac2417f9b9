"""Whole releases of pairs run in virtual time."""

from tests.scenarios.conftest import pace, world

__all__ = ["pace", "world"]
