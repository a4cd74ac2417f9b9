"""Options of an installation, chosen by the administrator; everything else follows from them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rollout_lws.errors import UsageError
from rollout_lws.objects.resources import DEFAULT_API_GROUP
from rollout_lws.settings import check_api_group, check_namespaces, check_notify, check_scripts

DEFAULT_NAMESPACE = "rollout-lws-system"
#: One replica leads; the other takes over at once when a node fails.
DEFAULT_REPLICAS = 2
#: Optional parts, which not every cluster supports or wants.
NETWORK_POLICY, POD_MONITOR, SERVICE_MONITOR = "network-policy", "pod-monitor", "service-monitor"
POD_DELETION_POLICY, GUARD, GATE_JOBS = "pod-deletion-policy", "guard", "gate-jobs"
EXTRAS = (NETWORK_POLICY, POD_MONITOR, SERVICE_MONITOR, POD_DELETION_POLICY, GUARD, GATE_JOBS)
#: failurePolicy of the guard's webhooks: edits pass or are refused while no guard answers.
FAILURE_POLICIES = ("Ignore", "Fail")
#: The ConfigMap with scripts that documentation and sandbox use.
DEFAULT_SCRIPTS = "rollout-lws-scripts"
#: plural.group, as CustomResourceDefinitions are called.
_KIND = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+", re.ASCII)
#: repository[:tag][@digest], as container runtimes parse it; only a node can tell whether it exists.
_IMAGE = re.compile(r"[a-z0-9][\w.\-]*(:\d+)?(/[a-z0-9._\-]+)*(:[\w][\w.\-]{0,127})?(@sha256:[0-9a-f]{64})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Installation:
    """An installation of the controller.

    ``image`` has the program ``rollout-lws`` on its PATH. ``namespace`` is the controller's own;
    ``watch_namespaces`` are those whose Rollouts it reconciles, () means all. One of ``replicas`` leads and the others
    stand by; 0 installs without starting it. ``extras`` is a subset of EXTRAS; ``guard_failure_policy`` is one of
    FAILURE_POLICIES. ``notify`` are Secrets of the namespace, each with a receiver of notifications; ``cluster_name``
    is what these call the cluster, "" for nothing. ``custom_network_scripts`` is the ConfigMap of the namespace with
    scripts for customNetworkRefs, "" for none; ``custom_network_kinds`` are the kinds that these may change, as
    plural.group. UsageError names an invalid option.
    """

    image: str
    namespace: str = DEFAULT_NAMESPACE
    replicas: int = DEFAULT_REPLICAS
    watch_namespaces: tuple[str, ...] = ()
    api_group: str = DEFAULT_API_GROUP
    extras: tuple[str, ...] = ()
    guard_failure_policy: str = FAILURE_POLICIES[0]
    notify: tuple[str, ...] = ()
    cluster_name: str = ""
    custom_network_scripts: str = ""
    custom_network_kinds: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not _IMAGE.fullmatch(self.image):
            raise UsageError(
                f"--image {self.image!r} is no image: write it as registry/repository:tag, or with @sha256:digest"
            )
        check_api_group(self.api_group)
        check_namespaces((self.namespace,), "--namespace")
        check_namespaces(self.watch_namespaces, "--watch-namespace")
        for secret in self.notify:
            if "/" in secret:
                raise UsageError(f"--notify {secret!r} is no name of a Secret: name one of namespace {self.namespace}")
        check_notify(self.notify, self.cluster_name)
        self._check_custom_networks()
        if self.replicas < 0:
            raise UsageError(f"--replicas {self.replicas}: use 2 or more, or 0 to install without starting it")
        if self.guard_failure_policy != FAILURE_POLICIES[0] and GUARD not in self.extras:
            raise UsageError(
                f"--guard-failure-policy {self.guard_failure_policy}: there is no guard without --with guard"
            )
        if self.guard_failure_policy != FAILURE_POLICIES[0] and self.replicas == 0:
            raise UsageError(
                f"--guard-failure-policy {self.guard_failure_policy} with --replicas 0: no guard would answer, and"
                " every edit would be refused: install it with Ignore, or with 2 replicas or more"
            )

    def _check_custom_networks(self) -> None:
        scripts, kinds = self.custom_network_scripts, self.custom_network_kinds
        if "/" in scripts:
            raise UsageError(
                f"--custom-network-scripts {scripts!r} is no name of a ConfigMap: name one of namespace"
                f" {self.namespace}"
            )
        if scripts:
            check_scripts(f"{self.namespace}/{scripts}")
        if kinds and not scripts:
            raise UsageError(
                f"--custom-network-kind {kinds[0]}: no script would change it without --custom-network-scripts"
            )
        for kind in kinds:
            if not _KIND.fullmatch(kind):
                raise UsageError(
                    f"--custom-network-kind {kind!r} is no kind: write plural.group, such as"
                    " httpproxies.projectcontour.io"
                )
        if len(set(kinds)) < len(kinds):
            raise UsageError("--custom-network-kind names the same kind twice")
