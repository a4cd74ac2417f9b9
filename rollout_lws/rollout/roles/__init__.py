"""Workloads that serve in turn: which of them does, and what becomes of the one without requests."""
