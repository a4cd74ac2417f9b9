"""What users write about gates: what a step has to show before it ends, and where figures come from."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias, assert_never

from pydantic import Field

from rollout_lws.analysis.kinds import Engine, Router, Signal
from rollout_lws.api.base import Model
from rollout_lws.api.words import FigureSource, GateStage

#: A latency ("2s", "500ms"), a share ("2%"), or a number of a gauge ("8").
LimitText = Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)?(ms|s|m|%)?$", max_length=16)]
#: A multiple of stable's value, "120%".
TimesText = Annotated[str, Field(pattern=r"^[1-9][0-9]{0,4}%$", max_length=6)]
#: A number ("0.01") or a share ("1%").
NumberText = Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)?%?$", max_length=20)]
#: A port by its number, or by its name as containers and Services have it.
PortNumber = Annotated[int, Field(ge=1, le=65_535)]
PortName = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=15)]
#: Visible characters and blanks.
HeaderText = Annotated[str, Field(pattern=r"^[ -~]*$", max_length=1024)]
#: Longest name of a CronJob that Kubernetes takes.
CronJobName = Annotated[str, Field(pattern=r"^[a-z0-9]+([-.]+[a-z0-9]+)*$", min_length=1, max_length=52)]
GateName = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", min_length=1, max_length=63)]


class MetricGate(Model):
    """A signal of the model servers, judged for the new version; exactly one of max, min and maxToStable."""

    signal: Signal
    """What is measured."""
    of: Router | None = None
    """Server whose metrics are read. EndpointPicker: the endpoint picker of the version's InferencePool, by Prometheus
    only; by default the leader pods.
    """
    quantile: Annotated[int, Field(ge=1, le=99)] | None = None
    """Of a latency: the percentage of requests that have to be within the limit; 95 by default."""
    max: LimitText | None = None
    """Limit: of a latency "2s" or "500ms", of a share of requests "2%", of a gauge "8" or "90%"."""
    min: LimitText | None = None
    """The least, of signals that are better when higher (PrefixCacheHits)."""
    max_to_stable: TimesText | None = None
    """Limit as a multiple of what the stable version has at the same time, "120%"."""
    confidence: Annotated[str, Field(pattern=r"^[5-9][0-9]%$", max_length=3)] | None = None
    """How sure a verdict has to be, 50% to 99%; 95% by default."""
    min_samples: Annotated[int, Field(ge=10, le=1_000_000)] | None = None
    """Completed requests of each version below which nothing is judged; 100 by default."""


class QueryGate(Model):
    """PromQL of the user's own, asked of Prometheus; exactly one of max and min."""

    prom_ql: Annotated[str, Field(alias="promQL", min_length=1, max_length=4096)]
    """The query, with placeholders: {{new}}, {{stable}} (matchers of the versions' pods), {{window}}, {{namespace}},
    {{pods.new}}, {{pods.stable}}. Its value is one number."""
    samples: Annotated[str, Field(min_length=1, max_length=4096)] | None = None
    """A query for the number of which the value is a share; without it the value is judged once, at the window's end.
    """
    max: NumberText | None = None
    """The most, "0.01" or "1%"."""
    min: NumberText | None = None
    """The least."""
    confidence: Annotated[str, Field(pattern=r"^[5-9][0-9]%$", max_length=3)] | None = None
    """How sure a verdict has to be, 50% to 99%; 95% by default. Of shares only."""
    min_samples: Annotated[int, Field(ge=10, le=1_000_000)] | None = None
    """Samples below which nothing is judged; 100 by default. Of shares only."""


class HttpGate(Model):
    """A request over plain HTTP, whose answer decides; exactly one of each and service."""

    each: Literal["Group"] | None = None
    """Group: the leader pod of each group of the new version is asked, and each has to pass."""
    service: Annotated[str, Field(pattern=r"^[a-z][a-z0-9]*(-+[a-z0-9]+)*$", max_length=63)] | None = None
    """Name of a Service in the Rollout's namespace, one of whose pods is asked."""
    port: PortNumber | PortName | None = None
    """Name or number: with each, of a container port, by default the one named http, else the leader's first; with
    service, of a port of the Service, by default its only one.
    """
    path: Annotated[str, Field(pattern=r"^/([A-Za-z0-9_~:-][A-Za-z0-9._~:-]*(/|$))*$", max_length=1024)] = "/"
    """Path that is asked for; / by default."""
    method: Literal["GET", "POST"] | None = None
    """GET or POST; by default POST with a body or to a Service, else GET."""
    headers: Annotated[dict[str, HeaderText], Field(default_factory=dict, max_length=16)]
    """Headers, but those by which HTTP works or clients are known (Host, Authorization); at most 16. No place for
    secrets.
    """
    body: Annotated[str, Field(max_length=16_384)] | None = None
    """Body of a POST, at most 16 KiB; by default JSON that says which release asks."""
    metadata: Annotated[dict[str, HeaderText], Field(default_factory=dict, max_length=16)]
    """Member metadata of the default body, as Flagger sends it to its webhooks; at most 16."""
    timeout_seconds: Annotated[int, Field(ge=1, le=60)] = 10
    """Seconds for each answer; 10 by default."""
    fail_on: Annotated[tuple[Annotated[int, Field(ge=400, le=599)], ...], Field(max_length=16)] = ()
    """Status codes that fail the version, 400 to 599; at most 16. Others besides 2xx are tried again."""

    @property
    def verb(self) -> str:
        """The method that is used."""
        if self.method is not None:
            return self.method
        return "POST" if self.body is not None or self.service is not None else "GET"


class JobGate(Model):
    """A Job that decides: it passes when the Job is complete, and fails when a container of it ends with an error."""

    from_cron_job: CronJobName
    """Name of the CronJob in the Rollout's namespace from whose template the Job is made; it may be suspended."""


#: What a gate asks.
Ask: TypeAlias = MetricGate | QueryGate | HttpGate | JobGate
#: Kinds of gates, as the members of a gate are called.
KINDS = ("metric", "query", "http", "job")


class PlannedGate(Model):
    """What gates of steps and gates of the whole release have in common."""

    name: GateName
    """Its name, unique among those of its step and of the release."""
    metric: MetricGate | None = None
    """A signal of the model servers."""
    query: QueryGate | None = None
    """PromQL of the user's own."""
    window: Annotated[int, Field(ge=30, le=86_400)] | None = None
    """Seconds, at least, of which the figures of a metric or query come; 300 by default."""

    @property
    def kinds(self) -> dict[str, Ask]:
        """The members of a kind that are set, by name; one in a gate without problems."""
        every: dict[str, Ask | None] = {"metric": self.metric, "query": self.query}
        return {name: each for name, each in every.items() if each is not None}

    @property
    def asked(self) -> Ask | None:
        """What it asks for: the one member of a kind that is set; None in a gate that has none."""
        return next(iter(self.kinds.values()), None)

    @property
    def seconds(self) -> int:
        """The window, in seconds."""
        return self.window if self.window is not None else 300

    @property
    def deadline(self) -> int | None:
        """Seconds until it waits for a user; None if it never does."""
        return None

    @property
    def watched(self) -> bool:
        """Whether it is judged one window after the other, until it fails."""
        return self.deadline is None


class ReleaseGate(PlannedGate):
    """Something that is watched from the first share of requests to the end of the promotion: it never has to pass, and
    ends the release when it fails.
    """


class StepGate(PlannedGate):
    """Something that a step has to pass before it ends."""

    when: GateStage = GateStage.DURING_STEP
    """DuringStep: once the step's traffic is routed; BeforeTraffic: once its groups are ready, before any of it is."""
    http: HttpGate | None = None
    """A request to pods of the new version, or to a Service."""
    job: JobGate | None = None
    """A Job of your own."""
    deadline_seconds: Annotated[int, Field(ge=30, le=604_800)] | None = None
    """Seconds after which a gate without a verdict waits for a user; by default twice the window of figures, 600 of a
    request, 3600 of a Job.
    """

    @property
    def kinds(self) -> dict[str, Ask]:
        every: dict[str, Ask | None] = {"http": self.http, "job": self.job}
        return super().kinds | {name: each for name, each in every.items() if each is not None}

    @property
    def deadline(self) -> int:
        """Seconds until it waits for a user; of a metric never less than its window."""
        asked, given = self.asked, self.deadline_seconds
        match asked:
            case HttpGate():
                return given if given is not None else 600
            case JobGate():
                return given if given is not None else 3600
            case MetricGate() | QueryGate() | None:
                return max(self.seconds, given if given is not None else 2 * self.seconds)
            case unknown:
                assert_never(unknown)


class PodMetrics(Model):
    """Where leader pods expose their metrics."""

    port: Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=15)] | None = None
    """Name or number of a container port; by default the one named metrics or http-metrics, else the leader's first."""
    path: Annotated[str, Field(pattern=r"^(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+$", max_length=256)] = "/metrics"
    """Path of the metrics; /metrics by default."""


class SecretKey(Model):
    """A key of a Secret in the Rollout's namespace, which is labelled rollouts.kruise.io/gates: "true"."""

    name: Annotated[str, Field(min_length=1, max_length=253)]
    """Name of the Secret."""
    key: Annotated[str, Field(min_length=1, max_length=253)]
    """The key."""


class PrometheusSource(Model):
    """A Prometheus that scrapes the model servers."""

    address: Annotated[str, Field(pattern=r"^https?://[^\s?#@]+$", max_length=512)] | None = None
    """Its URL, which the controller's --gate-addresses allow; by default the controller's --prometheus."""
    secret_key_ref: SecretKey | None = None
    """Sent as a bearer token."""
    matchers: Annotated[dict[str, Annotated[str, Field(max_length=256)]], Field(default_factory=dict, max_length=16)]
    """Labels that all series have, such as the cluster's."""
    pod_label: Annotated[str, Field(pattern=r"^[a-zA-Z_][a-zA-Z0-9_]*$", max_length=128)] = "pod"
    """Label that names the pod; pod by default."""


class Analysis(Model):
    """Where figures of gates come from."""

    from_: Annotated[FigureSource, Field(alias="from")] = FigureSource.PODS
    """Pods (default): the leader pods' own metrics; Prometheus: what it has scraped of them."""
    pods: PodMetrics = PodMetrics()
    """The leader pods' own metrics."""
    prometheus: PrometheusSource = PrometheusSource()
    """The Prometheus that figures come from, and that queries are asked of."""
    engine: Engine | None = None
    """The model server; by default the one whose metrics are exposed."""
