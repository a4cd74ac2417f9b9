"""Schemas of custom resources, compiled once: pruning, defaults, checks and CEL rules."""
