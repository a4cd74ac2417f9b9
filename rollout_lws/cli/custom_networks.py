"""Objects that scripts change (``customNetworkRefs``), as a cluster answers a user's questions: their kinds, the
scripts of its controller, and what that may do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from rollout_lws.api.validation import no_api_version
from rollout_lws.cli.access.transport import Transport
from rollout_lws.cli.install.inventory import labelled
from rollout_lws.cli.install.options import DEFAULT_NAMESPACE, DEFAULT_SCRIPTS
from rollout_lws.cli.install.ownership import flags
from rollout_lws.cli.install.rbac import CONTROLLER, Rule, custom_network_rules, script_rules
from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import CONFIG_MAPS, DEPLOYMENTS, Resource, version_path
from rollout_lws.traffic.custom.kinds import ServedKinds, served_as
from rollout_lws.traffic.custom.scripts import FLAG, UNKNOWN_SCRIPTS, Scripts

Object = dict[str, Any]
_REVIEWS = Resource("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False)


@dataclass(frozen=True, slots=True)
class Known:
    """The controller's ``scripts``; ``unknown`` says why these are not known, "" if they are. ``namespace`` and
    ``account`` are those of the controller's pods, "" where no Deployment says so.
    """

    scripts: Scripts
    unknown: str = ""
    namespace: str = ""
    account: str = ""


def kind_of(transport: Transport, api_version: str, kind: str) -> tuple[Resource | None, str | None]:
    """The kind as the cluster serves it, None where it does not; and why it cannot be used or is not known."""
    wrong = no_api_version(api_version)
    if wrong:
        return None, wrong
    group, _, version = api_version.rpartition("/")
    try:
        found = transport.find(version_path(group, version))
    except ApiError as error:
        return None, f"which resource {api_version} {kind} is may not be asked: {error.message}"
    return served_as(msgspec.convert(found or {}, ServedKinds), api_version, kind)


def scripts_of(transport: Transport) -> Known:
    """The scripts of the cluster's controller, by the flag of its Deployment. Where none can be seen, as for a
    controller that runs elsewhere, they are those of the ConfigMap that documentation and sandbox use, if it is there.
    """
    try:
        every = labelled(transport, DEPLOYMENTS)
        why = f"no Deployment {CONTROLLER} says which ConfigMap has them"
    except ApiError as error:
        if error.code != 403:
            raise
        every, why = [], f"which ConfigMap has them is said by the controller's Deployment: {error.message}"
    live = next((each for each in every if each["metadata"]["name"] == CONTROLLER), None)
    if live is None:
        texts, unread = _texts(transport, f"{DEFAULT_NAMESPACE}/{DEFAULT_SCRIPTS}")
        if texts is None or unread:
            return Known(UNKNOWN_SCRIPTS, why)
        return Known(Scripts(f"{DEFAULT_NAMESPACE}/{DEFAULT_SCRIPTS}", texts))
    namespace = live["metadata"]["namespace"]
    account = live["spec"]["template"]["spec"].get("serviceAccountName") or "default"
    named = next(reversed(flags(live, FLAG)), "")
    if not named:
        return Known(Scripts(), "", namespace, account)
    source = named if "/" in named else f"{namespace}/{named}"
    texts, unread = _texts(transport, source)
    known = UNKNOWN_SCRIPTS if unread else Scripts(source, texts or {})
    return Known(known, unread, namespace, account)


def _texts(transport: Transport, source: str) -> tuple[dict[str, str] | None, str]:
    """The data of a ConfigMap, None without one; and why it may not be read."""
    namespace, _, name = source.partition("/")
    try:
        found = transport.find(CONFIG_MAPS.path(namespace, name))
    except ApiError as error:
        if error.code != 403:
            raise
        return None, f"ConfigMap {source} may not be read: {error.message}"
    return (None if found is None else found.get("data") or {}), ""


def lacking(transport: Transport, known: Known, kinds: Iterable[Resource], namespace: str) -> tuple[str, ...]:
    """What the controller may not do, as "patch httpproxies.projectcontour.io in namespace prod"; () also where the
    user may not ask for it.
    """
    if not known.account:
        return ()
    asked = [(rule, namespace) for rule in custom_network_rules(map(str, kinds))]
    if known.scripts.source:
        home, _, name = known.scripts.source.partition("/")
        asked += [(rule, home) for rule in script_rules(name)]
    return tuple(said for rule, where in asked for said in _refused(transport, known, rule, where))


def _refused(transport: Transport, known: Known, rule: Rule, namespace: str) -> Iterator[str]:
    (plural,), name = rule.resources, "".join(rule.names)
    for verb in rule.verbs:
        attributes = {"group": rule.group, "resource": plural, "namespace": namespace, "verb": verb, "name": name}
        accounts = "system:serviceaccounts"
        account = {
            "user": f"system:serviceaccount:{known.namespace}:{known.account}",
            "groups": [accounts, f"{accounts}:{known.namespace}", "system:authenticated"],
        }
        spec = {**account, "resourceAttributes": attributes}
        try:
            head = {"apiVersion": _REVIEWS.api_version, "kind": _REVIEWS.kind}
            answer = transport.create(_REVIEWS.path(), {**head, "spec": spec})
        except ApiError as error:
            if error.code not in (403, 404):
                raise
            return
        if not (answer.get("status") or {}).get("allowed"):
            what = f"{plural}.{rule.group}" if rule.group else f"{plural} {name}"
            yield f"{verb} {what} in namespace {namespace}"
