"""Whole releases that swap, run in virtual time."""

from tests.scenarios.conftest import pace, world

__all__ = ["pace", "world"]
