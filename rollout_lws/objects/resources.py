"""The API resources that this package reads or writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from rollout_lws.errors import UsageError

#: Group of our own kinds; clusters that run OpenKruise Rollouts can use another one.
DEFAULT_API_GROUP = "rollouts.kruise.io"


@dataclass(frozen=True, slots=True)
class Resource:
    """One served resource, with its names in URLs and manifests."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True

    def __hash__(self) -> int:
        """A Resource is a key of most that is looked up, and hardly any two have the same plural."""
        return hash(self.plural)

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """URL path of the collection, one object, or a subresource of it; no namespace means all of them. UsageError
        for a name that would lead elsewhere.
        """
        parts = ["apis", self.group, self.version] if self.group else ["api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", _segment(namespace)]
        parts.append(self.plural)
        if name:
            parts.append(_segment(name))
        if subresource:
            parts.append(subresource)
        return "/" + "/".join(parts)

    def manifest(self, name: str, namespace: str = "", **members: Any) -> dict[str, Any]:
        """An object of this kind with these top-level members; without a namespace if none is given."""
        metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
        return {"apiVersion": self.api_version, "kind": self.kind, "metadata": metadata, **members}

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


@dataclass(frozen=True, slots=True)
class ObjectRef:
    """An object in the current namespace; its text is used in messages, such as "Service llama-api"."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def _segment(name: str) -> str:
    """One part of a path. Kubernetes allows no object name that is invalid as a path segment, and proxies may resolve
    dots and slashes, so these are rejected instead of quoted.
    """
    if name in (".", "..") or "/" in name or "%" in name:
        raise UsageError(f"{name!r} is no name of an object: it cannot be . or .., nor have / or % in it")
    return quote(name, safe="")


def version_path(group: str, version: str) -> str:
    """URL path of what a server has in a version of a group ("": the core group); UsageError as for a Resource."""
    parts = ("apis", _segment(group), _segment(version)) if group else ("api", _segment(version))
    return "/" + "/".join(parts)


NAMESPACES = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
NODES = Resource("", "v1", "Node", "nodes", namespaced=False)
PODS = Resource("", "v1", "Pod", "pods")
SERVICES = Resource("", "v1", "Service", "services")
CORE_EVENTS = Resource("", "v1", "Event", "events")
CONFIG_MAPS = Resource("", "v1", "ConfigMap", "configmaps")
RESOURCE_QUOTAS = Resource("", "v1", "ResourceQuota", "resourcequotas")
SECRETS = Resource("", "v1", "Secret", "secrets")
PERSISTENT_VOLUME_CLAIMS = Resource("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
SERVICE_ACCOUNTS = Resource("", "v1", "ServiceAccount", "serviceaccounts")
DEPLOYMENTS = Resource("apps", "v1", "Deployment", "deployments")
STATEFUL_SETS = Resource("apps", "v1", "StatefulSet", "statefulsets")
CONTROLLER_REVISIONS = Resource("apps", "v1", "ControllerRevision", "controllerrevisions")
JOBS = Resource("batch", "v1", "Job", "jobs")
CRON_JOBS = Resource("batch", "v1", "CronJob", "cronjobs")
ENDPOINT_SLICES = Resource("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices")
INGRESSES = Resource("networking.k8s.io", "v1", "Ingress", "ingresses")
NETWORK_POLICIES = Resource("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies")
HTTP_ROUTES = Resource("gateway.networking.k8s.io", "v1", "HTTPRoute", "httproutes")
GRPC_ROUTES = Resource("gateway.networking.k8s.io", "v1", "GRPCRoute", "grpcroutes")
VIRTUAL_SERVICES = Resource("networking.istio.io", "v1", "VirtualService", "virtualservices")
DESTINATION_RULES = Resource("networking.istio.io", "v1", "DestinationRule", "destinationrules")
INFERENCE_POOLS = Resource("inference.networking.k8s.io", "v1", "InferencePool", "inferencepools")
POD_DISRUPTION_BUDGETS = Resource("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")
HORIZONTAL_POD_AUTOSCALERS = Resource("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers")
EVENTS = Resource("events.k8s.io", "v1", "Event", "events")
LEASES = Resource("coordination.k8s.io", "v1", "Lease", "leases")
_RBAC = "rbac.authorization.k8s.io"
ROLES = Resource(_RBAC, "v1", "Role", "roles")
ROLE_BINDINGS = Resource(_RBAC, "v1", "RoleBinding", "rolebindings")
CLUSTER_ROLES = Resource(_RBAC, "v1", "ClusterRole", "clusterroles", namespaced=False)
CLUSTER_ROLE_BINDINGS = Resource(_RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False)
_ADMISSION = "admissionregistration.k8s.io"
ADMISSION_POLICIES = Resource(
    _ADMISSION, "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies", namespaced=False
)
ADMISSION_POLICY_BINDINGS = Resource(
    _ADMISSION, "v1", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", namespaced=False
)
MUTATING_WEBHOOKS = Resource(
    _ADMISSION, "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", namespaced=False
)
VALIDATING_WEBHOOKS = Resource(
    _ADMISSION, "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", namespaced=False
)
#: Only created for its response, never stored.
SELF_SUBJECT_REVIEWS = Resource(
    "authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", namespaced=False
)
SELF_SUBJECT_ACCESS_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False
)
CUSTOM_RESOURCE_DEFINITIONS = Resource(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)
#: What a server has in a version of a group; it is asked for by a path of its own.
API_RESOURCES = Resource("", "v1", "APIResourceList", "apiresources", namespaced=False)
#: Kueue's, in the two versions that its releases of the last two years serve; the older one only without the newer.
KUEUE_WORKLOADS = Resource("kueue.x-k8s.io", "v1beta2", "Workload", "workloads")
KUEUE_WORKLOADS_BEFORE = Resource("kueue.x-k8s.io", "v1beta1", "Workload", "workloads")
KUEUE_CHECKS = Resource("kueue.x-k8s.io", "v1beta2", "AdmissionCheck", "admissionchecks", namespaced=False)
#: The Prometheus operator's.
POD_MONITORS = Resource("monitoring.coreos.com", "v1", "PodMonitor", "podmonitors")
SERVICE_MONITORS = Resource("monitoring.coreos.com", "v1", "ServiceMonitor", "servicemonitors")
LEADER_WORKER_SETS = Resource("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet", "leaderworkersets")
#: The LeaderWorkerSet project's own, from 0.9 on: each makes LeaderWorkerSets of several roles.
DISAGGREGATED_SETS = Resource("disaggregatedset.x-k8s.io", "v1", "DisaggregatedSet", "disaggregatedsets")

#: Prefix of LeaderWorkerSet's own labels and annotations.
LWS_PREFIX = "leaderworkerset.sigs.k8s.io/"
LWS_NAME = LWS_PREFIX + "name"
LWS_GROUP_INDEX = LWS_PREFIX + "group-index"
LWS_WORKER_INDEX = LWS_PREFIX + "worker-index"
LWS_REVISION = LWS_PREFIX + "template-revision-hash"
