"""Findings: the closed list of codes with their severities, and one finding with its position."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from rollout_lws.rollout.reasons import Reason


class Severity(IntEnum):
    """Worst first. Only an error is certain to be refused."""

    ERROR = 0
    WARNING = 1
    NOTE = 2

    def __str__(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Code:
    """``summary`` is the text in the documentation; ``reason`` the controller's, of a refusal that manifests alone can
    show: others depend on a cluster, or on the previous version. A code is never reused.
    """

    severity: Severity
    summary: str
    reason: Reason | None = None


_ERROR, _WARNING, _NOTE = Severity

CODES: dict[str, Code] = {
    # Reading
    "LWS001": Code(_ERROR, "not YAML, or a key twice in one mapping"),
    "LWS002": Code(_ERROR, "a template of Helm or Jinja, not a manifest"),
    "LWS004": Code(_WARNING, "the same object twice"),
    # Refused by the API server
    "LWS101": Code(_ERROR, "a field that a Rollout does not have"),
    "LWS102": Code(_ERROR, "a value of the wrong type, or out of its bounds"),
    "LWS103": Code(_ERROR, "a required field is missing"),
    "LWS104": Code(_WARNING, "a field that another kind is not known to have"),
    "LWS105": Code(_ERROR, "refused by LeaderWorkerSet's own webhook"),
    "LWS106": Code(_ERROR, "an object without a name"),
    "LWS107": Code(_ERROR, "an API version that is not served"),
    # Refused by the controller
    "LWS201": Code(_ERROR, "the strategy cannot be released", Reason.INVALID_SPEC),
    "LWS202": Code(_ERROR, "workloadRef names no kind that can be released", Reason.WRONG_WORKLOAD_KIND),
    "LWS203": Code(_ERROR, "the Rollout's name is too long", Reason.NAME_TOO_LONG),
    "LWS204": Code(_ERROR, "two Rollouts for one workload", Reason.SECOND_ROLLOUT),
    "LWS205": Code(_ERROR, "the workload is another controller's", Reason.WORKLOAD_OWNED),
    "LWS206": Code(_ERROR, "groupIdentity Hash", Reason.HASH_IDENTITY),
    "LWS207": Code(_ERROR, "a LeaderWorkerSet of MultiKueue's", Reason.MULTIKUEUE),
    "LWS208": Code(_ERROR, "too few groups for capacity InPlace, or for shift", Reason.TOO_FEW_GROUPS),
    "LWS209": Code(_ERROR, "the canary's name is taken", Reason.NAME_TAKEN),
    "LWS210": Code(
        _ERROR, "a Service that no release can use, or that would pass every share by", Reason.SERVICE_PROBLEM
    ),
    "LWS211": Code(_ERROR, "an InferencePool that no release can use", Reason.POOL_PROBLEM),
    "LWS212": Code(
        _ERROR, "a route that cannot share requests, or a step that it cannot express", Reason.ROUTE_PROBLEM
    ),
    "LWS213": Code(
        _ERROR,
        "an autoscaler that would undo a hold, or that scales a side of a pair or of a swap",
        Reason.AUTOSCALER_PROBLEM,
    ),
    "LWS214": Code(_ERROR, "capacity Surge of a LeaderWorkerSet that Kueue queues", Reason.SURGE_UNDER_KUEUE),
    "LWS215": Code(_ERROR, "a pair whose route does not say which side is active"),
    "LWS216": Code(
        _ERROR,
        "replicas in the manifest of a workload whose Rollout scales two, in a pair or a swap",
        Reason.REPLICAS_APPLIED,
    ),
    "LWS217": Code(_ERROR, "a budget, Service or pool of one of two workloads that serve in turn", Reason.LEFT_BEHIND),
    # Accepted, but a mistake
    "LWS301": Code(_WARNING, "readiness of the leader by TCP only"),
    "LWS302": Code(_WARNING, "no readiness probe on the leader"),
    "LWS303": Code(_WARNING, "a load balancer that checks health by TCP"),
    "LWS304": Code(_WARNING, "the address of a group's leader written out in a template"),
    "LWS305": Code(_WARNING, "a partition in the manifest"),
    "LWS306": Code(_WARNING, "a selector that matches workers which are not probed as leaders are"),
    "LWS307": Code(_WARNING, "a name near the limit of its pods' labels"),
    "LWS308": Code(_WARNING, "a deadline shorter than a start may take"),
    "LWS309": Code(_WARNING, "a step that takes more than half as many groups again"),
    "LWS310": Code(_WARNING, "a pause that is never waited for"),
    "LWS311": Code(_WARNING, "a release without any pause"),
    "LWS312": Code(_WARNING, "leaders that end at once when they are deleted"),
    "LWS313": Code(_WARNING, "a Service that sends requests to groups that are not ready"),
    "LWS314": Code(_WARNING, "two of a manifest, an autoscaler and a Rollout that set the number of groups"),
    "LWS317": Code(_WARNING, "a preStop longer than the pod is given to end"),
    "LWS318": Code(_WARNING, "a Service that no group of the canary is behind"),
    "LWS320": Code(_WARNING, "volumes of a release's groups that stay when it is over"),
    "LWS321": Code(_WARNING, "leaders that are sent requests before their workers exist"),
    "LWS323": Code(_WARNING, "a deadline after Kueue's own timeout"),
    "LWS324": Code(_WARNING, "a drain until leaders are idle that do not say so"),
    "LWS325": Code(_WARNING, "gates whose failure leaves the bad version its requests"),
    "LWS326": Code(_WARNING, "a gate of figures in a step without requests"),
    "LWS327": Code(_WARNING, "a gate that asks for more requests than can come in its time"),
    "LWS328": Code(_WARNING, "a pair whose two workloads both have groups, and no activeSide"),
    "LWS329": Code(_WARNING, "a shift that leaves its load to few groups"),
    "LWS330": Code(_WARNING, "a shift whose groups drain for long, one after the other"),
    "LWS331": Code(_WARNING, "a companion that no InferencePool of its side selects"),
    "LWS332": Code(_WARNING, "a Service that sends requests to companions as well"),
    "LWS333": Code(_WARNING, "a NetworkPolicy or PodMonitor of one of two workloads that serve in turn"),
    "LWS334": Code(_WARNING, "a StatefulSet whose pods start one after the other"),
    "LWS335": Code(_WARNING, "the name of a StatefulSet's pod written out in its template"),
    # Not decidable, or no mistake
    "LWS401": Code(_NOTE, "an object that is not among the files"),
    "LWS402": Code(_NOTE, "a Rollout of OpenKruise's own"),
    "LWS404": Code(_NOTE, "rules that were not asked because of earlier findings"),
    "LWS405": Code(_NOTE, "a gate before traffic of groups that get requests already"),
    "LWS406": Code(_NOTE, "a limit between two edges of the server's histogram"),
    "LWS407": Code(_NOTE, "the route of a pair, whose weights are the controller's at rest too"),
}
CODE_OF: dict[Reason, str] = {each.reason: code for code, each in CODES.items() if each.reason is not None}


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One finding. ``line`` and ``column`` start at 1; ``about`` is the object, as ``Kind/name``, "" for the file as a
    whole; ``path`` is the field in the object.
    """

    file: str
    line: int
    column: int
    code: str
    message: str
    about: str = ""
    path: str = ""

    @property
    def severity(self) -> Severity:
        return CODES[self.code].severity
