"""What an administrator chooses when rollout-lws is installed; everything else follows from it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rollout_lws.errors import UsageError
from rollout_lws.settings import DEFAULT_API_GROUP, check_api_group, check_namespaces

DEFAULT_NAMESPACE = "rollout-lws-system"
#: repository[:tag][@digest], as container runtimes read it; whether it exists only a node can tell.
_IMAGE = re.compile(r"[a-z0-9][\w.\-]*(:\d+)?(/[a-z0-9._\-]+)*(:[\w][\w.\-]{0,127})?(@sha256:[0-9a-f]{64})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Installation:
    """One controller on a cluster.

    ``image`` has the program ``rollout-lws`` on its PATH. ``namespace`` is where the controller lives;
    ``watch_namespaces`` are those whose Rollouts it takes care of, () means all. ``replicas`` is 1, or 0 to install
    without starting it: there is no leader election, and two would race. UsageError says what cannot be installed.
    """

    image: str
    namespace: str = DEFAULT_NAMESPACE
    replicas: int = 1
    watch_namespaces: tuple[str, ...] = ()
    api_group: str = DEFAULT_API_GROUP

    def __post_init__(self) -> None:
        if not _IMAGE.fullmatch(self.image):
            raise UsageError(
                f"--image {self.image!r} is no image: write it as registry/repository:tag, or with @sha256:digest"
            )
        check_api_group(self.api_group)
        check_namespaces((self.namespace,), "--namespace")
        check_namespaces(self.watch_namespaces, "--watch-namespace")
        if self.replicas not in (0, 1):
            raise UsageError(
                f"--replicas {self.replicas}: there is no leader election yet and several controllers would race: use"
                " 1, or 0 to install without starting it"
            )
