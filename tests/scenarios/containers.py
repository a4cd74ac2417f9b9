"""What runs in the pods of stories, and how the version is read back from it.

Where nothing is pulled, a version is simply the tag of an image that nobody has. Machines pull what they are told to,
so there every version is the same image, which exists, with another value in its environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_NAME, _VARIABLE = "vllm", "VERSION"
#: Characters that have more than one spelling in JSON, as commands and URLs of real model servers have them.
_SPELLED = {"name": "START", "value": "sh -c 'a && b > c 2>&1' <x> one\u2028two"}


@dataclass(frozen=True, slots=True)
class Containers:
    """``image`` is the one of every version; without it each version is a tag of its own."""

    image: str = ""

    def of(self, version: str) -> list[dict[str, Any]]:
        """The containers of a pod template."""
        if not self.image:
            return [{"name": _NAME, "image": f"{_NAME}:{version}", "env": [_SPELLED]}]
        return [{"name": _NAME, "image": self.image, "env": [{"name": _VARIABLE, "value": version}, _SPELLED]}]

    def version(self, pod: Mapping[str, Any]) -> str:
        container = pod["spec"]["containers"][0]
        if not self.image:
            return str(container["image"].rpartition(":")[2])
        return next(str(each["value"]) for each in container["env"] if each["name"] == _VARIABLE)


#: What runs in the sandbox.
TAGGED = Containers()
