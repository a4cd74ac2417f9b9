"""Schemas of custom resources, compiled once: pruning, defaults, validation and CEL rules."""
