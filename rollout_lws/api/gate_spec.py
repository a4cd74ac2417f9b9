"""What users write about gates: what a step has to show before it ends, and where figures come from."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias, assert_never

from pydantic import Field

from rollout_lws.analysis.kinds import Engine, Signal
from rollout_lws.api.base import Model
from rollout_lws.api.words import GateStage

#: A latency ("2s", "500ms"), a share ("2%"), or a number of a gauge ("8").
LimitText = Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)?(ms|s|m|%)?$", max_length=16)]
#: A multiple of stable's value, "120%".
TimesText = Annotated[str, Field(pattern=r"^[1-9][0-9]{0,4}%$", max_length=6)]
#: A port by its number, or by its name as containers and Services have it.
PortNumber = Annotated[int, Field(ge=1, le=65_535)]
PortName = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=15)]
#: Visible characters and blanks.
HeaderText = Annotated[str, Field(pattern=r"^[ -~]*$", max_length=1024)]
GateName = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", min_length=1, max_length=63)]


class MetricGate(Model):
    """A signal of the model servers, judged for the new version; exactly one of max, min and maxToStable."""

    signal: Signal
    """What is measured."""
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


#: Kinds of gates.
Ask: TypeAlias = MetricGate | HttpGate


class StepGate(Model):
    """Something that a step has to pass before it ends."""

    name: GateName
    """Its name, unique in the step."""
    when: GateStage = GateStage.DURING_STEP
    """DuringStep: once the step's traffic is routed; BeforeTraffic: once its groups are ready, before any of it is."""
    metric: MetricGate | None = None
    """A signal of the model servers."""
    http: HttpGate | None = None
    """A request to pods of the new version, or to a Service."""
    window: Annotated[int, Field(ge=30, le=86_400)] | None = None
    """Seconds, at least, of which a metric's figures come, from when the step's traffic is routed; 300 by default."""
    deadline_seconds: Annotated[int, Field(ge=30, le=604_800)] | None = None
    """Seconds after which a gate without a verdict waits for a user; by default twice the window of a metric, 600 of a
    request.
    """

    @property
    def asked(self) -> Ask | None:
        """What it asks for: the one member of a kind that is set; None in a gate that has none."""
        return self.metric or self.http

    @property
    def seconds(self) -> int:
        """The window, in seconds."""
        return self.window if self.window is not None else 300

    @property
    def deadline(self) -> int:
        """Seconds until it waits for a user; of a metric never less than its window."""
        asked, given = self.asked, self.deadline_seconds
        match asked:
            case HttpGate():
                return given if given is not None else 600
            case MetricGate() | None:
                return max(self.seconds, given if given is not None else 2 * self.seconds)
            case unknown:
                assert_never(unknown)


class PodMetrics(Model):
    """Where leader pods expose their metrics."""

    port: Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=15)] | None = None
    """Name or number of a container port; by default the one named metrics or http-metrics, else the leader's first."""
    path: Annotated[str, Field(pattern=r"^(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+$", max_length=256)] = "/metrics"
    """Path of the metrics; /metrics by default."""


class Analysis(Model):
    """Where figures of gates come from."""

    pods: PodMetrics = PodMetrics()
    """The leader pods' own metrics."""
    engine: Engine | None = None
    """The model server; by default the one whose metrics are exposed."""
