"""The data of a notification, whose JSON schema is ``schemas/notification.json``: what receivers may rely on.

A member that does not apply is absent. New members may come with any version; what is here changes its meaning, or
goes, only with another ``SCHEMA``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rollout_lws.api.base import MicroTime, Model

#: Names this schema, and its version: ``dataschema`` of a CloudEvent, and ``$id`` of the schema.
SCHEMA = "urn:rollout-lws:notification:1"


class Object(Model):
    """An object in the Rollout's namespace."""

    kind: str
    """Its kind, such as LeaderWorkerSet."""
    name: str
    """Its name."""


class Origin(Model):
    """The Rollout."""

    namespace: str
    """Its namespace."""
    name: str
    """Its name."""
    uid: str
    """Its UID: another one is another Rollout of the same name."""
    cluster: str | None = None
    """The cluster, as the controller's --cluster-name says; absent without one."""


class Verdict(Model):
    """Which of the conditions Ready, Reconciling and Stalled is true after it, and why."""

    condition: str
    """Ready, Reconciling or Stalled."""
    reason: str
    """One word of a closed list."""
    message: str | None = None
    """One sentence: what, who is affected, what happens by itself, the next command."""
    needs_person: bool = False
    """Whether nothing goes on before a person acts."""


class Step(Model):
    """The step that is on, or was last."""

    index: int
    """Its number, from 1."""
    of: int
    """How many steps the plan has."""
    state: str
    """Its state, in the words of OpenKruise Rollouts, such as StepPaused."""


class Weight(Model):
    """Percent of the requests that go to the new version."""

    desired: int
    """What was asked of routers."""
    applied: int | None = None
    """What they accepted last."""


class Version(Model):
    """A version of the workload's template."""

    template_hash: str
    """Our hash of it."""
    revision: str | None = None
    """The workload's own revision of it."""
    release: str | None = None
    """Id of its release."""


class Versions(Model):
    """The version that serves, and the one that is released."""

    stable: Version | None = None
    """The version that serves."""
    new: Version | None = None
    """The version that is being released; absent at rest."""


class Count(Model):
    """Groups of one version."""

    ready: int
    """How many are ready."""
    total: int
    """How many there are."""


class Groups(Model):
    """Groups of both versions."""

    stable: Count | None = None
    """Of the version that serves."""
    new: Count | None = None
    """Of the version that is being released."""


class Gate(Model):
    """A gate that has a result now. Values and limits are texts with their unit."""

    name: str
    """Its name in the plan."""
    kind: str
    """Its kind: metric, query, http or job."""
    result: str
    """Passed, Failed, Inconclusive, Error or Skipped."""
    seconds: float
    """Seconds since it began."""
    message: str | None = None
    """Why, in a sentence."""
    value: str | None = None
    """The new version's value."""
    stable_value: str | None = None
    """The stable version's value; absent unless the limit depends on it."""
    limit: str | None = None
    """The limit that stood."""
    samples: int | None = None
    """Completed requests of the new version, readings of a gauge."""
    stable_samples: int | None = None
    """The same of the stable version; absent unless the limit depends on it."""
    share: str | None = None
    """Share of the new version's requests that were slow or failed, where that decided."""
    share_from: str | None = None
    """The least that this share may be."""
    share_to: str | None = None
    """The most that it may be."""
    share_limit: str | None = None
    """The share that the limit allows."""
    query: str | None = None
    """The query as it was sent, of a gate that asks one."""
    job: str | None = None
    """The Job that decided."""


class Data(Model):
    """What happened to a Rollout, and how it stands since."""

    reason: str
    """Reason of the Event."""
    type: Literal["Normal", "Warning"]
    """Type of the Event."""
    message: str
    """Note of the Event."""
    about: Object
    """What the Event is on: the Rollout or its workload."""
    rollout: Origin
    """The Rollout."""
    workload: Object
    """The workload that it releases."""
    time: MicroTime
    """When it happened."""
    phase: str | None = None
    """status.phase of the Rollout."""
    state: str | None = None
    """STATUS of kubectl get."""
    verdict: Verdict | None = None
    """Why it is in that state."""
    step: Step | None = None
    """The step; absent before the first release."""
    weight: Weight | None = None
    """How requests are shared; absent where no router shares them."""
    versions: Versions = Versions()
    """The versions."""
    groups: Groups = Groups()
    """Their groups."""
    gates: tuple[Gate, ...] = ()
    """Gates that have decided with this."""
    next: tuple[str, ...] = ()
    """Commands by which a person goes on or back; empty where nothing waits for one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """What is sent. ``id`` is the same however often it is sent, and whichever replica does; ``source`` is a URI
    reference of the Rollout.
    """

    id: str
    source: str
    data: Data
