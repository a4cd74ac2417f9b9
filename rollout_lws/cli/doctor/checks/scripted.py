"""Objects that scripts change: whether the controller has the script, and the rights, that a share takes."""

from __future__ import annotations

from rollout_lws.cli.doctor.case import Case
from rollout_lws.cli.doctor.links import Link, Name, State, ok
from rollout_lws.traffic.routers.custom import CustomRouter


def unknown(case: Case, router: CustomRouter, about: str) -> Link | None:
    """The link of an object whose kind is not known, or cannot be used; else None."""
    why = case.d.o.marked.custom.unknown.get(router.named.custom_kind)
    if why is None:
        return None
    by_itself = "the links after it are looked at all the same"
    return Link(Name.ROUTE, State.UNKNOWN, about, why, by_itself, (case.kubectl("api-resources"),))


def link(case: Case, about: str, steps: tuple[str, ...]) -> Link:
    """The link of an object that is there, and that only a script can share requests with."""
    known = case.facts.networks
    assert known is not None, "the Rollout names it"
    said = case.said_of_scripts
    if said is not None:
        by_itself = "it goes on by itself as soon as that is fixed"
        return Link(Name.ROUTE, State.BROKEN, about, said.message, by_itself, steps)
    if case.facts.lacking:
        account = f"system:serviceaccount:{known.namespace}:{known.account}"
        text = f"the controller ({account}) may not {' or '.join(case.facts.lacking)}"
        by_itself = "no release begins, or goes on, before it may: docs/traffic-custom.md says how it is given"
        return Link(Name.ROUTE, State.BROKEN, about, text, by_itself, (f"kubectl auth can-i --list --as {account}",))
    shares = f"with {case.share} of requests to the new version"
    if known.unknown:
        text = f"exists, {shares}; whether the controller has a script for it is not known here: {known.unknown}"
        return Link(Name.ROUTE, State.UNKNOWN, about, text, "the controller tells, once a release needs it", steps)
    return ok(Name.ROUTE, about, f"exists, {shares}; its script is in ConfigMap {known.scripts.source}")
