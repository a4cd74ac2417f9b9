"""What a pod of a group that is about to go says of itself: the labels that it has lost, and since when."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

import msgspec

from rollout_lws.api.resources import Keys
from rollout_lws.objects.meta import LABEL_KEY, LABEL_VALUE, Struct
from rollout_lws.objects.workloads import Pod


class Draining(Struct, frozen=True):
    """``labels`` by which requests found the pod, removed at ``since`` so that it gets no more of them."""

    labels: dict[str, str]
    since: Annotated[datetime, msgspec.Meta(tz=True)]


_decoder = msgspec.json.Decoder(Draining)


def draining(pod: Pod, keys: Keys) -> Draining | None:
    """The record on the pod; None without one that can be read. Any client may have written it."""
    text = pod.metadata.annotations.get(keys.draining)
    if text is None:
        return None
    try:
        return _decoder.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return None


def lost_labels(record: Draining, reserved: tuple[str, ...]) -> dict[str, str]:
    """The labels of the record that a release may have removed: sound ones, and none by which controllers find pods."""
    return {
        key: value
        for key, value in record.labels.items()
        if not key.startswith(reserved) and LABEL_KEY.fullmatch(key) and LABEL_VALUE.fullmatch(value)
    }


def taken_out(record: Draining, keys: Keys) -> dict[str, Any]:
    """The merge patch that removes these labels from a pod, and records them."""
    text = msgspec.json.encode(record).decode()
    return _metadata(dict.fromkeys(record.labels), {keys.draining: text})


def put_back(labels: Mapping[str, str], keys: Keys) -> dict[str, Any]:
    """The merge patch that gives a pod these labels back, and removes the record."""
    return _metadata(labels, {keys.draining: None})


def _metadata(labels: Mapping[str, str | None], annotations: Mapping[str, str | None]) -> dict[str, Any]:
    return {"metadata": {"labels": dict(labels), "annotations": dict(annotations)}}
