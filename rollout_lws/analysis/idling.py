"""Whether model servers still work on requests: what is asked of pods that are about to go, and what they answered.

A pod is idle once it has said twice in a row that nothing runs and nothing waits. A round that brings no answer changes
nothing of that: it tells neither that requests run nor that none do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias, assert_never

from rollout_lws.analysis.kinds import Engine, Signal
from rollout_lws.analysis.readings import Exposition, Level, Same, Trouble
from rollout_lws.analysis.signals import families, read

#: Answers in a row after which a pod is idle, as a request may be on its way between two of an engine's figures; and
#: attempts in a row after which it is silent.
IN_A_ROW = 2
#: SGLang's label of the tensor-parallel rank that exposes a figure.
_RANK = "tp_rank"
#: What an engine has to expose, each with what its pod does not say without it.
_BOTH = {
    Signal.RUNNING_REQUESTS: "how many requests run",
    Signal.QUEUE_LENGTH: "how many requests wait",
}

#: Requests that run or wait on a pod; or why that is not known.
Requests: TypeAlias = float | Trouble


@dataclass(frozen=True, slots=True)
class Worked:
    """What was scraped of a pod by another than us, and just now: ``idle`` is how many answers in a row had no request,
    and ``servers`` are the addresses of all that it runs.
    """

    idle: int
    servers: frozenset[str] = frozenset()


#: What one round brings of a pod; Same if it is scraped in time, and nothing newer is there yet.
Told: TypeAlias = Requests | Worked | Same


@dataclass(frozen=True, slots=True)
class Idle:
    """The question: does nothing run and nothing wait, in the names of ``engine`` or of any."""

    engine: Engine | None = None

    @property
    def families(self) -> frozenset[str]:
        """Names of what has to be read."""
        return frozenset[str]().union(*(families(signal, self.engine) for signal in _BOTH))

    def read(self, exposition: Exposition) -> Requests:
        """Of one pod's answer. Both figures are needed: with one of them a server could work and seem to be idle."""
        total = 0.0
        for signal, what in _BOTH.items():
            match read(signal, _of_all_ranks(exposition), self.engine):
                case Level(value):
                    total += value
                case _:
                    return Trouble(f"it does not say {what}")
        return total


def _of_all_ranks(exposition: Exposition) -> Exposition:
    """The figures of every rank, which are added then: ranks with requests of their own have numbers above 0, and those
    that repeat another's only make the sum larger.
    """
    samples = {
        name: tuple(replace(each, labels={**each.labels, _RANK: ""}) for each in found)
        for name, found in exposition.samples.items()
    }
    return replace(exposition, samples=samples)


@dataclass(frozen=True, slots=True)
class Heard:
    """What one pod has said. ``at`` is the epoch second of its last answer, or of the first attempt without any
    (``answered`` False); ``idle`` how many answers in a row had no request. Since then ``failed`` attempts have brought
    nothing, the last one because of ``trouble`` ("" if there was none); of the last ones ``silent`` in a row no answer
    at all. ``servers`` are addresses of its servers, of which none may be missing; none are known of a pod that is
    asked itself.
    """

    at: float
    answered: bool = False
    idle: int = 0
    failed: int = 0
    silent: int = 0
    trouble: str = ""
    servers: frozenset[str] = frozenset()

    @property
    def is_idle(self) -> bool:
        return self.idle >= IN_A_ROW

    @property
    def is_unknown(self) -> bool:
        """Whether it does not say what runs: one attempt may fail by chance."""
        return self.failed >= IN_A_ROW

    @property
    def is_silent(self) -> bool:
        """Whether it does not answer at all."""
        return self.silent >= IN_A_ROW


@dataclass(frozen=True, slots=True)
class Idling:
    """The answer: ``pods`` are those that were asked in the last round, by uid."""

    pods: Mapping[str, Heard] = field(default_factory=dict)

    def after(self, now: float, found: Mapping[str, Told]) -> Idling:
        """With one more round."""
        return Idling({pod: _heard(self.pods.get(pod) or Heard(now), now, told) for pod, told in found.items()})


def _heard(before: Heard, now: float, told: Told) -> Heard:
    match told:
        case Trouble(why, silent):
            in_a_row = before.silent + 1 if silent else 0
            return replace(before, failed=before.failed + 1, silent=in_a_row, trouble=why)
        case Same():
            return replace(before, failed=0, silent=0, trouble="")
        case Worked(idle, servers):
            return Heard(now, answered=True, idle=idle, servers=servers)
        case float() | int():
            return Heard(now, answered=True, idle=0 if told else before.idle + 1)
        case unknown:
            assert_never(unknown)
