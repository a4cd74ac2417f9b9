"""Writes ``schemas/notification.json``, the JSON schema of a notification's data, for ``make generate``.

python -m rollout_lws.notifications.schema            write it
python -m rollout_lws.notifications.schema --check    exit 1 if it differs
"""

from __future__ import annotations

import json
import sys
from typing import Any

from rollout_lws.api.generate import ROOT, bring
from rollout_lws.notifications.data import SCHEMA, Data

PATH = ROOT / "schemas" / "notification.json"


def schema() -> dict[str, Any]:
    """Members that are not in it may be there: receivers pass over what they do not know."""
    made: dict[str, Any] = _present(Data.model_json_schema(mode="serialization", by_alias=True))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA, **made}


def _present(schema: Any) -> Any:
    """A schema in which nothing is null: what does not apply is absent."""
    if isinstance(schema, list):
        return [_present(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {
        name: _present(part)
        for name, part in schema.items()
        if name not in ("default", "anyOf") and not (name == "title" and isinstance(part, str))
    }
    forms = [_present(each) for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    return {**kept, **(forms[0] if len(forms) == 1 else {"anyOf": forms} if forms else {})}


if __name__ == "__main__":
    sys.exit(bring({PATH: json.dumps(schema(), indent=2) + "\n"}, sys.argv[1:]))
