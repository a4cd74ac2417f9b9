"""Writes the chart's RBAC templates, generated from ``rbac``, for ``make generate``.

python -m rollout_lws.cli.install.chart            write them
python -m rollout_lws.cli.install.chart --check    exit 1 and name the files that differ
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from rollout_lws.api.generate import ROOT, TEMPLATES, bring, literal
from rollout_lws.cli.install import rbac
from rollout_lws.cli.install.rbac import Rule

#: Placeholder for the chart's value: no API group can have this name.
_GROUP = "group.invalid"
#: Placeholders for the names of a kind and of a ConfigMap, each of which its template is given.
_PLURAL, _OF_KIND, _SCRIPTS = "plural-invalid", "kind.invalid", "scripts.invalid"
_FILLED = {
    _GROUP: "{{ .Values.apiGroup }}",
    _PLURAL: '{{ (splitn "." 2 .)._0 | quote }}',
    _OF_KIND: '{{ (splitn "." 2 .)._1 | quote }}',
    _SCRIPTS: "{{ . | quote }}",
}
_NOTE = "{{- /* Generated from rollout_lws/cli/install/rbac.py by 'make generate'; do not edit. */}}\n"


def files() -> dict[Path, str]:
    """Generated content by path."""
    return {ROOT / TEMPLATES / "_rules.tpl": _rules(), ROOT / TEMPLATES / "people.yaml": _people()}


def _rules() -> str:
    everything = rbac.controller_rules(_GROUP)
    named = {
        "controller": everything,
        "cluster": [rule for rule in everything if rule.cluster],
        "namespaced": [rule for rule in everything if not rule.cluster],
        "gateJobs": rbac.gate_job_rules(),
        "customNetwork": rbac.custom_network_rules((f"{_PLURAL}.{_OF_KIND}",)),
        "scripts": rbac.script_rules(_SCRIPTS),
        "leaderElection": rbac.leader_election_rules(),
        "guard": rbac.guard_rules(),
    }
    return _NOTE + "\n".join(_define(f"rollout-lws.rules.{name}", rules) for name, rules in named.items())


def _define(name: str, rules: Iterable[Rule]) -> str:
    return f'{{{{- define "{name}" -}}}}\n{_yaml([rule.rendered() for rule in rules])}{{{{- end }}}}\n'


def _people() -> str:
    roles = "---\n".join(_role(each) for each in rbac.people_roles(_GROUP))
    return f"{_NOTE}{{{{- if .Values.rbac.people }}}}\n{roles}{{{{- end }}}}\n"


def _role(role: dict[str, Any]) -> str:
    head = {"apiVersion": role["apiVersion"], "kind": role["kind"], "metadata": {"name": role["metadata"]["name"]}}
    labels = "".join(f"    {line}\n" for line in _yaml(role["metadata"]["labels"]).splitlines())
    ours = '    {{- include "rollout-lws.labels" . | nindent 4 }}\n'
    return f"{_yaml(head)}  labels:\n{ours}{labels}{_yaml({'rules': role['rules']})}"


def _yaml(value: Any) -> str:
    text = literal(yaml.safe_dump(value, sort_keys=False, width=120))
    for placeholder, filled in _FILLED.items():
        text = text.replace(placeholder, filled)
    return text


if __name__ == "__main__":
    sys.exit(bring(files(), sys.argv[1:]))
