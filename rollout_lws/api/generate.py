"""Writes what derives from the models: ``crds/*.yaml`` for clusters, the same as templates for the chart, and
``schemas/*.json`` for editors.

python -m rollout_lws.api.generate            write them
python -m rollout_lws.api.generate --check    exit 1 and name the files that differ
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from rollout_lws.api.crd import render

ROOT = Path(__file__).resolve().parents[2]
#: The chart's templates, below the root.
TEMPLATES = Path("charts", "rollout-lws", "templates")
_NOTE = "# Generated from rollout_lws/api by 'make generate'; do not edit.\n"
#: Where the chart has its value. No real API group has this name.
_GROUP = "group.invalid"
_TEMPLATE = """\
{{{{- /* Generated from rollout_lws/api by 'make generate'; do not edit. */}}}}
{{{{- if .Values.crds.install }}}}
apiVersion: {version}
kind: {kind}
metadata:
  name: {name}
  labels:
    {{{{- include "rollout-lws.labels" . | nindent 4 }}}}
  {{{{- if .Values.crds.keep }}}}
  annotations:
    helm.sh/resource-policy: keep
  {{{{- end }}}}
{spec}{{{{- end }}}}
"""


def files() -> dict[Path, str]:
    """Content by path."""
    found: dict[Path, str] = {}
    for manifest in render():
        name = manifest["spec"]["names"]["plural"]
        text = yaml.safe_dump(manifest, sort_keys=False, width=120)
        found[ROOT / "crds" / f"{name}.yaml"] = _NOTE + text
        schema = manifest["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        document = {"$schema": "https://json-schema.org/draft/2020-12/schema", **_for_editors(schema)}
        found[ROOT / "schemas" / f"{name}.json"] = json.dumps(document, indent=2) + "\n"
    for manifest in render(_GROUP):
        found[ROOT / TEMPLATES / "crds" / f"{manifest['spec']['names']['plural']}.yaml"] = _template(manifest)
    return found


def _template(manifest: dict[str, Any]) -> str:
    """A definition for the chart, whose API group is a value."""
    spec = yaml.safe_dump({"spec": manifest["spec"]}, sort_keys=False, width=120)
    text = _TEMPLATE.format(
        version=manifest["apiVersion"],
        kind=manifest["kind"],
        name=manifest["metadata"]["name"],
        spec=literal(spec),
    )
    return text.replace(_GROUP, "{{ .Values.apiGroup }}")


def literal(text: str) -> str:
    """``text`` as a template that says just that."""
    return text.replace("{{", '{{ "{{" }}')


def _for_editors(schema: Any) -> Any:
    """A structural schema as strict JSON schema: Kubernetes' extensions dropped, unknown fields marked."""
    if isinstance(schema, list):
        return [_for_editors(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    converted = {key: _for_editors(value) for key, value in schema.items() if not key.startswith("x-kubernetes-")}
    if isinstance(schema.get("properties"), dict) and "type" in schema:
        converted["additionalProperties"] = False
        if "metadata" in schema["properties"]:
            converted["properties"]["metadata"] = {"type": "object"}
    return converted


def main(arguments: list[str]) -> int:
    return bring(files(), arguments)


def bring(wanted: Mapping[Path, str], arguments: list[str]) -> int:
    """Write the files that differ, or, with --check, name them; the exit code."""
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    if "--check" in arguments:
        for path in stale:
            print(f"{path.relative_to(ROOT)} differs from the sources: run 'make generate'", file=sys.stderr)
        return 1 if stale else 0
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(wanted[path])
        print(f"wrote {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
