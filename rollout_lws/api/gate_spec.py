"""What users write about gates: what a step has to show before it ends, and where figures come from."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

from rollout_lws.analysis.kinds import Engine, Signal
from rollout_lws.api.base import Model
from rollout_lws.api.words import GateStage

#: A latency ("2s", "500ms"), a share ("2%"), or a number of a gauge ("8").
LimitText = Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)?(ms|s|m|%)?$", max_length=16)]
#: A multiple of stable's value, "120%".
TimesText = Annotated[str, Field(pattern=r"^[1-9][0-9]{0,4}%$", max_length=6)]
#: Longest name of a CronJob that Kubernetes takes.
CronJobName = Annotated[str, Field(pattern=r"^[a-z0-9]+([-.]+[a-z0-9]+)*$", min_length=1, max_length=52)]
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


class JobGate(Model):
    """A Job that decides: it passes when the Job is complete, and fails when the Job does."""

    from_cron_job: CronJobName
    """Name of the CronJob in the Rollout's namespace from whose template the Job is made; it may be suspended."""


#: Kinds of gates.
Ask: TypeAlias = MetricGate | JobGate


class StepGate(Model):
    """Something that a step has to pass before it ends."""

    name: GateName
    """Its name, unique in the step."""
    when: GateStage = GateStage.DURING_STEP
    """DuringStep: once the step's traffic is routed; BeforeTraffic: once its groups are ready, before any of it is."""
    metric: MetricGate | None = None
    """A signal of the model servers."""
    job: JobGate | None = None
    """A Job of your own."""
    window: Annotated[int, Field(ge=30, le=86_400)] | None = None
    """Seconds, at least, of which the figures come, from when the step's traffic is routed; 300 by default."""
    deadline_seconds: Annotated[int, Field(ge=30, le=604_800)] | None = None
    """Seconds after which a gate without a verdict waits for a user; by default twice the window, 3600 for a Job."""

    @property
    def kinds(self) -> dict[str, Ask]:
        """The members of a kind that are set, by name; one in a gate without problems."""
        every: dict[str, Ask | None] = {"metric": self.metric, "job": self.job}
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
    def deadline(self) -> int:
        """Seconds until it waits for a user; never less than the window of figures."""
        if self.job is not None:
            return self.deadline_seconds if self.deadline_seconds is not None else 3600
        return max(self.seconds, self.deadline_seconds if self.deadline_seconds is not None else 2 * self.seconds)


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
