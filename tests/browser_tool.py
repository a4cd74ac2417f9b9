"""The browser of this machine: whether there is one, and something to drive it with.

Tests that need it carry the marker ``browser`` and nothing else; tests/conftest.py skips them all with one line where
it is missing. ``python -m tests.browser_tool`` prints the packages of Debian that are lacking, and with ``--require``
fails where tests would be skipped.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys

PACKAGE = "chromium"
HOW_TO_GET_IT = f"apt-get install {PACKAGE}, then make test-browser gets the rest, 170 MB installed, and runs these"
#: Another program than those below.
CHROMIUM = "ROLLOUT_LWS_CHROMIUM"
_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
_MODULES = {"playwright": "playwright", "axe_playwright_python": "axe-playwright-python"}


def program() -> str | None:
    """Where Chromium is."""
    named = (os.environ.get(CHROMIUM), *map(shutil.which, _PROGRAMS))
    return next(filter(None, named), None)


def missing() -> str:
    """Why no test can use it here; empty when they can."""
    if program() is None:
        return "there is no Chromium on the PATH"
    lacking = [package for module, package in _MODULES.items() if importlib.util.find_spec(module) is None]
    return f"there is no {' and no '.join(lacking)}" if lacking else ""


def _main() -> None:
    if "--require" not in sys.argv:
        print("" if program() else PACKAGE)
    elif why := missing():
        sys.exit(f"tests in a browser cannot be skipped here, and {why}: {HOW_TO_GET_IT}")


if __name__ == "__main__":
    _main()
