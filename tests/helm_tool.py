"""Helm as a library: whether it is there, and what its tests say where it is not.

Tests that need it carry the marker ``helm`` and nothing else; tests/conftest.py skips them all with one line where it
is missing.
"""

from __future__ import annotations

import importlib.util

HOW_TO_GET_IT = "make test-chart gets them, 350 MB installed, and runs these"
_MODULES = {"helm_python": "helm-python-sdk", "kubernetes_validate": "kubernetes-validate"}


def missing() -> str:
    """Why no test can use it here; empty when they can."""
    lacking = [package for module, package in _MODULES.items() if importlib.util.find_spec(module) is None]
    return f"there is no {' and no '.join(lacking)}" if lacking else ""
