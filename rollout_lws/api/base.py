"""What all our own kinds share: frozen models with camelCase names on the wire, and metadata.

Reading is lenient (unknown fields are dropped: the API server prunes, and an older or newer writer must never stop us);
what the spec must be is said by the CRD and by ``validation``.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from typing import Annotated, Any, ClassVar, Self, TypeVar, cast, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    PlainSerializer,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
)
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema

_M = TypeVar("_M", bound="Model")
#: What is not written unless it is required.
_EMPTY: tuple[Any, ...] = (None, "", [], {})


def _end_at_first(schema: Any) -> None:
    """Have each list and each map of a schema end at the first item that is wrong."""
    if isinstance(schema, dict):
        if schema.get("type") in ("tuple", "list", "dict"):
            schema["fail_fast"] = True
        schema = list(schema.values())
    for each in schema if isinstance(schema, (list, tuple)) else ():
        _end_at_first(each)


class Model(BaseModel):
    """Base of all models: frozen, camelCase aliases, docstrings below fields are their descriptions."""

    model_config = ConfigDict(
        frozen=True, alias_generator=to_camel, populate_by_name=True, extra="ignore", use_attribute_docstrings=True
    )

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """A request with thousands of invalid items must not cause a record of each."""
        schema = handler(source)
        _end_at_first(schema)
        return schema

    #: Fields (wire names) that are written even when they are empty, because Kruise's types always serialise them.
    always: ClassVar[frozenset[str]] = frozenset()

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """Itself, as a model never changes: pydantic copies a default each time that it is taken."""
        return self

    def to_json_dict(self) -> dict[str, Any]:
        """JSON as it goes on the wire: absent instead of null; empty collections and strings only where required."""
        document: dict[str, Any] = {}
        for name, key, kept, plain in _fields(type(self)):
            value = getattr(self, name)
            written = None if value is None else plain(value)
            if kept or written not in _EMPTY:
                document[key] = written
        return document


def with_fields(model: _M, **changes: Any) -> _M:
    """The model with these fields, by their Python names; the same object if it has them already."""
    before = vars(model)
    same = all(before[name] == value for name, value in changes.items())
    return model if same else model.model_copy(update=changes)


@cache
def _fields(model: type[Model]) -> tuple[tuple[str, str, bool, Callable[[Any], Any]], ...]:
    """Of each field: its name, its name on the wire, whether it is written even when it is empty, and how."""
    return tuple(
        (name, field.alias or name, (field.alias or name) in model.always or field.is_required(), _writer(field))
        for name, field in model.model_fields.items()
    )


def _writer(field: FieldInfo) -> Callable[[Any], Any]:
    """Times are written as their type says, Time or MicroTime."""
    known = [
        *field.metadata,
        *(mark for each in get_args(field.annotation) for mark in getattr(each, "__metadata__", ())),
    ]
    found = next((mark.func for mark in known if isinstance(mark, PlainSerializer)), _plain)
    return cast(Callable[[Any], Any], found)


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Model):
        return value.to_json_dict()
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return value


def _whole_seconds(moment: datetime) -> str:
    return _written(moment, "seconds")


def _microseconds(moment: datetime) -> str:
    return _written(moment, "microseconds")


def _written(moment: datetime, precision: str) -> str:
    """RFC 3339, in which a year has four digits; what strftime writes for a year below 1000 has fewer on Linux."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec=precision) + "Z"


def _in_utc(value: Any, read: ValidatorFunctionWrapHandler) -> datetime:
    moment: datetime
    try:
        moment = read(value)
        return moment.astimezone(UTC) if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    except (OverflowError, ValueError):
        if not isinstance(value, str):
            raise
        return _UNREADABLE


#: Stands for a moment that cannot be read: the API server takes years and offsets that a datetime does not have.
_UNREADABLE = datetime.max.replace(tzinfo=UTC)
#: metav1.Time: RFC 3339 in whole seconds.
Time = Annotated[datetime, WrapValidator(_in_utc), PlainSerializer(_whole_seconds, when_used="json")]
#: metav1.MicroTime: RFC 3339 in microseconds; pauses are kept to the millisecond.
MicroTime = Annotated[datetime, WrapValidator(_in_utc), PlainSerializer(_microseconds, when_used="json")]


#: Largest number of a status that a controller writes: of seconds it is 68 years.
MOST_TOLD = 2**31 - 1


def tallied(number: int) -> int:
    """The nearest number that a Tally can have."""
    return max(0, min(number, MOST_TOLD))


#: A count or a length of time that a controller has reported. A client may write any other number
#: into a status: it is read as the nearest possible one, because one bad number must not make a Rollout unreadable.
Tally = Annotated[int, AfterValidator(tallied), WithJsonSchema({"type": "integer", "minimum": 0, "maximum": MOST_TOLD})]


def percent(number: int) -> int:
    """The nearest percentage."""
    return max(0, min(number, 100))


#: A percentage that a controller has told, read as a Tally is.
Percent = Annotated[int, AfterValidator(percent), WithJsonSchema({"type": "integer", "minimum": 0, "maximum": 100})]


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
