"""Scripts that say how an object of any kind shares requests, what they are given, and what came of it.

Nothing here runs one: a decision names the ``Evaluation`` that it needs, and the next one sees its ``Outcome``. The
format is that of OpenKruise Rollouts: a ConfigMap has a script for a kind under ``lua.traffic.routing.<Kind>.<group>``,
and a script finds its input in the global ``obj``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

from rollout_lws.objects.resources import CONFIG_MAPS
from rollout_lws.traffic.names import ManagedRef

#: Largest input: the object without its status, in bytes of JSON.
MOST_INPUT = 2**19


@dataclass(frozen=True)
class Evaluation:
    """One script and its whole input, ``given``, as JSON; its result depends on nothing else. ``key`` is where the
    script is in the ConfigMap.
    """

    key: str
    script: str
    given: bytes

    @cached_property
    def digest(self) -> str:
        """Identifies script and input."""
        return hashlib.sha256(self.script.encode() + b"\0" + self.given).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Output:
    """What a script has returned, as JSON."""

    body: bytes


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a script has returned nothing of use, as "line 3: ..." where the line is known. ``lasts``: it would be the
    same each time; otherwise the script had too little time, and is run again later.
    """

    message: str
    lasts: bool = True


Outcome: TypeAlias = Output | Failure


@dataclass(frozen=True, slots=True)
class Scripts:
    """What is known of scripts. ``source`` is the ConfigMap that has them, as namespace/name; "" where the controller
    runs none, None where it is not known whether one does. ``texts`` are the scripts by key; ``waits`` says why they
    are not known, "" before the first answer, None once they are. ``outcomes`` are those that the last decision wanted.
    """

    source: str | None = ""
    texts: Mapping[str, str] = field(default_factory=dict)
    waits: str | None = None
    outcomes: Mapping[Evaluation, Outcome] = field(default_factory=dict)


#: The flag of the controller that names the ConfigMap.
FLAG = "--custom-network-scripts"
NO_SCRIPTS = Scripts()
UNKNOWN_SCRIPTS = Scripts(source=None)


#: The keys of scripts in the ConfigMap begin with it.
KEY_PREFIX = "lua.traffic.routing."


def key_of(ref: ManagedRef) -> str:
    """The key of the script for objects of this kind. An API version without a group counts as one, as in Kruise."""
    return f"{KEY_PREFIX}{ref.kind}.{ref.api_version.partition('/')[0]}"


def scripts_in(manifests: Iterable[Mapping[str, Any]]) -> Scripts:
    """The scripts of the ConfigMap among these manifests that has some; unknown where none has, or several do."""
    found: list[Scripts] = []
    for each in manifests:
        data, meta = each.get("data"), each.get("metadata")
        if (each.get("apiVersion"), each.get("kind")) != (CONFIG_MAPS.api_version, CONFIG_MAPS.kind):
            continue
        if not isinstance(data, Mapping) or not isinstance(meta, Mapping):
            continue
        texts = {str(key): str(text) for key, text in data.items()}
        if any(key.startswith(KEY_PREFIX) for key in texts):
            place = (meta.get("namespace"), meta.get("name"))
            found.append(Scripts("/".join(str(part) for part in place if part), texts))
    return found[0] if len(found) == 1 else UNKNOWN_SCRIPTS
