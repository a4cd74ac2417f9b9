"""What kubernetes-asyncio knows of kubeconfigs, logins and TLS, without its models of all kinds.

Whatever part of the library is imported, its packages import every API and every model first: 900 modules, 37 MB for
as long as the process lives, and most of a second of its start. Reading a configuration needs none of them, so those
packages' own files are not run while the modules are imported that do it.
"""

from __future__ import annotations

import importlib
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

_LIBRARY = "kubernetes_asyncio"
_CLIENT = f"{_LIBRARY}.client"


def config() -> Any:
    """The library's module ``config``."""
    return _module(f"{_LIBRARY}.config")


def configuration() -> Any:
    """A new ``Configuration`` with the library's defaults."""
    return _module(f"{_CLIENT}.configuration").Configuration()


def rest(configuration: Any) -> Any:
    """The library's session, whose connector has the TLS of ``configuration``; to be closed."""
    return _module(f"{_CLIENT}.rest").RESTClientObject(configuration)


def _module(name: str) -> ModuleType:
    if name not in sys.modules and _LIBRARY not in sys.modules:
        _import()
    return importlib.import_module(name) if _LIBRARY in sys.modules else sys.modules[name]


def _import() -> None:
    spec = find_spec(_LIBRARY)
    if spec is None or spec.submodule_search_locations is None:
        raise ModuleNotFoundError(f"{_LIBRARY} is not installed", name=_LIBRARY)
    folder = Path(spec.submodule_search_locations[0])
    hollow = {name: ModuleType(name) for name in (_LIBRARY, _CLIENT)}
    hollow[_LIBRARY].__path__, hollow[_CLIENT].__path__ = [str(folder)], [str(folder / "client")]
    sys.modules.update(hollow)
    try:
        found = importlib.import_module(f"{_CLIENT}.configuration")
        # What ``config`` takes from the package. Only those of its functions need the latter that nobody calls here.
        vars(hollow[_CLIENT]).update(Configuration=found.Configuration, ApiClient=object)
        for name in (f"{_CLIENT}.rest", f"{_LIBRARY}.config"):
            importlib.import_module(name)
    finally:
        # Whoever wants the whole library gets it, and in it the very modules that were imported here.
        for name in hollow:
            del sys.modules[name]
