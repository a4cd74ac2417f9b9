"""What all our own kinds share: frozen models with camelCase names on the wire, and metadata.

Reading is lenient (unknown fields are dropped: the API server prunes, and an older or newer writer must never stop us);
what the spec must be is said by the CRD and by ``validation``.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, PlainSerializer
from pydantic.alias_generators import to_camel


class Model(BaseModel):
    """Base of all models: frozen, camelCase aliases, docstrings below fields are their descriptions."""

    model_config = ConfigDict(
        frozen=True, alias_generator=to_camel, populate_by_name=True, extra="ignore", use_attribute_docstrings=True
    )

    #: Fields (wire names) that are written even when they are empty, because Kruise's types always serialise them.
    always: ClassVar[frozenset[str]] = frozenset()

    def to_json_dict(self) -> dict[str, Any]:
        """JSON as it goes on the wire: absent instead of null; empty collections and strings only where required."""
        document: dict[str, Any] = {}
        for name, field in type(self).model_fields.items():
            key = field.alias or name
            value = _plain(getattr(self, name))
            empty = value is None or value == "" or value == [] or value == {}
            if not empty or key in self.always or field.is_required():
                document[key] = value
        # Field serialisers (times) are pydantic's; only values that need them are dumped by it.
        dumped = self.model_dump(mode="json", by_alias=True, include=_times(self))
        return {key: dumped.get(key, value) for key, value in document.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Model):
        return value.to_json_dict()
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return str(value) if isinstance(value, str) else value


def _times(model: Model) -> set[str]:
    return {name for name in type(model).model_fields if isinstance(getattr(model, name), datetime)}


def _whole_seconds(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _microseconds(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


#: metav1.Time: RFC 3339 in whole seconds.
Time = Annotated[datetime, PlainSerializer(_whole_seconds, when_used="json")]
#: metav1.MicroTime: RFC 3339 in microseconds; pauses are kept to the millisecond.
MicroTime = Annotated[datetime, PlainSerializer(_microseconds, when_used="json")]


class OwnerReference(Model):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


class Metadata(Model):
    """The part of metadata that is read here."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()
