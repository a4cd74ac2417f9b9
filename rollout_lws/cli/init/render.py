"""Renders a proposal as commented manifests for users to keep."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from rollout_lws.api import Touch, TrafficRouting
from rollout_lws.capacity import known
from rollout_lws.cli import gitops
from rollout_lws.cli.init.proposal import Proposal
from rollout_lws.targets.target import takers

_GRACE, _DRAIN = (TrafficRouting.model_fields[name].default for name in ("grace_period_seconds", "drain_seconds"))


def rollout(made: Proposal) -> str:
    """The Rollout manifest."""
    return "\n".join(_rollout(made)) + "\n"


def _rollout(made: Proposal) -> Iterator[str]:
    yield from _head(made)
    yield f"apiVersion: {made.api_version}"
    yield "kind: Rollout"
    yield "metadata:"
    yield f"  name: {_scalar(made.name)}"
    yield f"  namespace: {_scalar(made.namespace)}"
    yield "spec:"
    yield "  workloadRef:"
    yield f"    apiVersion: {made.kind.resource.api_version}"
    yield f"    kind: {made.kind.resource.kind}"
    yield f"    name: {_scalar(made.workload)}"
    if made.counterpart:
        yield "  counterpartRef:"
        yield f"    apiVersion: {made.kind.resource.api_version}"
        yield f"    kind: {made.kind.resource.kind}"
        yield f"    name: {_scalar(made.counterpart)}"
        yield from _companions(made)
        yield from _roles(made)
    elif made.capacity.swaps:
        yield from _number(made)
    yield "  strategy:"
    yield from (f"    {line}" for line in made.capacity.manifest)
    if made.capacity.shifts:
        gives = "The active side gives up groups" if made.counterpart else f"{made.workload} gives up groups"
        yield f"      # {gives} as the other one gets some: both together have at most one more"
        yield "      # than at rest (maxExtraGroups: 1), and as many ready ones (maxUnavailableGroups: 0). An abort"
        yield "      # loads again what was given up."
        yield "      shift: {}"
    if made.routing.routes:
        yield from _routings(made)
    yield "      steps:"
    for step in made.steps:
        yield f"        # {step.why[0].upper()}{step.why[1:]}."
        yield f"        - replicas: {_scalar(step.replicas)}"
        if step.traffic is not None:
            yield f"          traffic: {_scalar(step.traffic)}"
        if step.pause is None:
            yield "          pause: {} # no duration: wait for an approval"
        elif step.pause:
            yield "          pause:"
            yield f"            duration: {step.pause} # seconds"


def _companions(made: Proposal) -> Iterator[str]:
    """Further workloads of each side, whose version is one with that of the two."""
    if made.companions:
        yield f"  companions: # {made.workload} and these are one version, and so are {made.counterpart} and theirs"
    for each in made.companions:
        yield f"    - name: {_scalar(each.name)} # goes with {made.workload}"
        yield f"      counterpart: {_scalar(each.counterpart)} # goes with {made.counterpart}"
        if each.replicas:
            number = int(each.replicas) if each.replicas.isdigit() else each.replicas
            of = "" if isinstance(number, int) else ": of the Rollout's number, rounded up"
            yield f"      replicas: {_scalar(number)} # groups of the one whose side has the requests{of}"


def _roles(made: Proposal) -> Iterator[str]:
    """Which side of a pair is active, and what releases write."""
    if made.active_side:
        goes = "; the groups of the other one go" if made.capacity.makes_groups else ""
        yield f"  activeSide: {_scalar(made.active_side)} # gets all requests when this is applied{goes}"
    if made.capacity.makes_groups:
        yield "  # No replicas: the controller writes the active side's number here. From then on scale the Rollout"
        yield "  # instead of the workloads, and leave replicas out of their manifests."
    elif made.owner:
        yield f"  touch: {Touch.ROUTE_ONLY.value} # releases write the route alone: {made.owner} would undo more"
    else:
        yield f"  touch: {Touch.ROUTE_ONLY.value} # releases write the route alone: you change and scale both workloads"


def _number(made: Proposal) -> Iterator[str]:
    """The number of groups of a Rollout whose releases scale two workloads in turn."""
    kind = made.kind.resource.kind
    if made.is_autoscaled or not made.replicas:
        yield f"  # No replicas: the controller writes the {kind}'s number here. From then on scale the Rollout"
        yield f"  # instead of the {kind}, and leave replicas out of its manifest."
    else:
        told = f"scale the Rollout from now on; leave replicas out of the {kind}'s manifest"
        yield f"  replicas: {made.replicas} # {told}"


def _head(made: Proposal) -> Iterator[str]:
    kind, told = made.kind.resource.kind, made.capacity.help.format(kind=made.kind.resource.kind)
    takes = "".join(f", {count} {name} each" for name, count in made.accelerators.items())
    if made.counterpart:
        sides = ((made.workload, made.replicas), (made.counterpart, made.counterpart_replicas))
        both = " and ".join(f"{name} ({_counted(replicas, 'group')})" for name, replicas in sides)
        yield f"# How requests move between {kind}s {both}."
        yield f"# {told}"
        yield "# What a release takes: rollout-lws plan -f FILE"
        return
    ways = [each for each in known.OF_ONE if made.kind.surges or not each.surges]
    other = ", ".join(each.flag for each in ways if each is not made.capacity)
    groups = f"{_counted(made.replicas, 'group')} of {_counted(made.size, 'pod')}{takes}"
    yield f"# How new versions of {kind} {made.workload} are released: {groups}."
    yield f"# {told}"
    yield f"# Other ways: rollout-lws init --strategy {other}"
    yield "# What this one takes: rollout-lws plan -f FILE"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _routings(made: Proposal) -> Iterator[str]:
    routing = made.routing
    assert routing.router is not None, "only what routes is rendered"
    grace, (*outer, named) = routing.router.grace_seconds or _GRACE, routing.router.field
    yield "      trafficRoutings:"
    leads = f"leads to {made.workload}" if routing.pair else f"selects the {takers(made.kind)} today"
    yield f"        - service: {_scalar(routing.service)} # {leads}"
    if routing.counterpart_service:
        yield f"          counterpartService: {_scalar(routing.counterpart_service)} # leads to {made.counterpart}"
    for depth, member in enumerate(outer):
        yield f"{'  ' * depth}          {member}:"
    refers = "InferencePool" if routing.stable_pool else "Service"
    refers = f"both {refers}s" if routing.pair else f"the {refers}"
    yield f"{'  ' * len(outer)}          {named}: {_scalar(routing.route)} # refers to {refers}"
    if routing.policy and routing.router.policy is not None:
        yield f"{'  ' * len(outer)}          {routing.router.policy.field[-1]}: {_scalar(routing.policy)}"
    if routing.stable_pool:
        yield "            inferencePool:"
        yield f"              stable: {_scalar(routing.stable_pool)}"
        of = f"leads to {made.counterpart}" if routing.pair else "for the new version's groups"
        yield f"              canary: {_scalar(routing.canary_pool)} # {of}"
    yield f"          gracePeriodSeconds: {grace} # for routers to act on a change"
    at_once = routing.pair and not made.capacity.shifts
    drained = "the side that has lost its share" if at_once else "a group that goes"
    yield f"          drainSeconds: {_DRAIN} # for requests that run on {drained}: your longest answer"
    if made.unlisted:
        what = ", ".join(made.unlisted)
        yield f"          # {what} would select groups of the new version, too, whatever their share."
        yield "          allowUnmanagedBackends: true"


def service(made: Proposal) -> str:
    """The Service manifest, "" when one exists."""
    if made.service is None:
        return ""
    pods, kind = takers(made.kind), made.kind.resource.kind
    comment = f"# No Service that a release can use selects {pods} of {kind} {made.workload}; a route needs one.\n"
    if made.kind.labels.stateful_sets is not None:
        comment += f"# Its name must not be the {kind}'s: its controller makes a headless Service of that name.\n"
    return comment + _yaml(made.service)


def ignore_rules(made: Proposal) -> str:
    """Ignore rules for GitOps tools as plain text; "" when no GitOps tool is detected."""
    told = []
    for keeper in made.keepers:
        if "Argo CD" in keeper:
            rules = gitops.argo_rules(made.ignored)
        else:
            rules = gitops.flux_rules(made.ignored, helm="HelmRelease" in keeper)
        told.append(f"{keeper} would revert what a release writes. Add to its manifest:\n\n{_yaml(rules)}")
    return "\n".join(told)


def documents(made: Proposal) -> str:
    """Everything as one YAML stream, with the ignore rules as comments."""
    parts = [part for part in (service(made), rollout(made)) if part]
    rules = "".join(f"# {line}".rstrip() + "\n" for line in ignore_rules(made).splitlines())
    return "---\n".join(parts) + rules


def _yaml(value: Any) -> str:
    return str(yaml.safe_dump(value, sort_keys=False))


def _scalar(value: Any) -> str:
    """Quoted as YAML needs it: a name may look like a number."""
    return str(yaml.safe_dump(value)).partition("\n")[0]
