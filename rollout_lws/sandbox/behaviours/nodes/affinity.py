"""Required pod affinity and anti-affinity, with which LWS gives each group a topology domain of its own.

Preferred terms, terms with other namespaces and node affinity are not evaluated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rollout_lws.sandbox.behaviours.base import Object, labels_of
from rollout_lws.sandbox.wire.selectors import format_labels, parse_labels

#: A topology key with one of its values: a zone, a rack, a node pool.
Domain = tuple[str, str]
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def terms(pod: Object, kind: str) -> Sequence[Mapping[str, Any]]:
    """The required terms of a pod's ``kind``: podAffinity or podAntiAffinity."""
    affinity = pod["spec"].get("affinity") or {}
    return (affinity.get(kind) or {}).get(_REQUIRED) or ()


@dataclass(frozen=True, slots=True)
class Placement:
    """Which topology domains one pod may use: one of each of ``wanted``, none of the others."""

    wanted: tuple[frozenset[Domain] | str, ...] = ()
    """Domains with pods that a term selects; the bare topology key if only the pod itself matches its term."""
    shunned: frozenset[Domain] = frozenset()
    repelled: frozenset[Domain] = frozenset()

    def problem(self, node: Mapping[str, str]) -> str:
        """Why a node with these labels does not fit, in the scheduler's words; "" when it fits."""
        here = frozenset(node.items())
        for term in self.wanted:
            if term not in node if isinstance(term, str) else not term & here:
                return "node(s) didn't match pod affinity rules"
        if self.shunned & here:
            return "node(s) didn't match pod anti-affinity rules"
        return "node(s) didn't satisfy existing pods anti-affinity rules" if self.repelled & here else ""


ANYWHERE = Placement()


def placement(
    pod: Object, bound: Iterable[Object], repelling: Iterable[Object], nodes: Mapping[str, Mapping[str, str]]
) -> Placement:
    """``bound`` are the bound pods in the pod's namespace, ``repelling`` all bound pods with anti-affinity;
    ``nodes`` maps node names to labels.
    """
    around = list(bound)
    wanted: list[frozenset[Domain] | str] = []
    for term in terms(pod, "podAffinity"):
        domains = _domains(term, pod, around, nodes)
        first = not domains and _matches(term, pod, pod)
        wanted.append(str(term["topologyKey"]) if first else domains)
    shunned = (_domains(term, pod, around, nodes) for term in terms(pod, "podAntiAffinity"))
    repelled = (
        _domain(term, other, nodes)
        for other in repelling
        for term in terms(other, "podAntiAffinity")
        if _matches(term, other, pod)
    )
    return Placement(tuple(wanted), frozenset().union(*shunned), frozenset(each for each in repelled if each))


def _domains(
    term: Mapping[str, Any], owner: Object, around: Iterable[Object], nodes: Mapping[str, Mapping[str, str]]
) -> frozenset[Domain]:
    found = (_domain(term, each, nodes) for each in around if _matches(term, owner, each))
    return frozenset(each for each in found if each)


def _domain(term: Mapping[str, Any], pod: Object, nodes: Mapping[str, Mapping[str, str]]) -> Domain | None:
    key = str(term["topologyKey"])
    value = nodes.get(pod["spec"].get("nodeName", ""), {}).get(key)
    return None if value is None else (key, value)


def _matches(term: Mapping[str, Any], owner: Object, other: Object) -> bool:
    """Whether a term of ``owner`` selects ``other``."""
    selector = term.get("labelSelector")
    if selector is None or other["metadata"].get("namespace") != owner["metadata"].get("namespace"):
        return False
    return parse_labels(format_labels(selector)).matches(labels_of(other))
