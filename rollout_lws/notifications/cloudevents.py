"""Renders a notification as a CloudEvent 1.0 in the structured JSON mode."""

from __future__ import annotations

import msgspec

from rollout_lws.notifications.data import SCHEMA, Notification

CONTENT_TYPE = "application/cloudevents+json"
#: Before the reason of the Event.
TYPE = "io.rollout-lws."


def cloud_event(told: Notification) -> bytes:
    """The body. Attributes are those of the specification, without extensions."""
    data = told.data.to_json_dict()
    return msgspec.json.encode(
        {
            "specversion": "1.0",
            "id": told.id,
            "source": told.source,
            "type": f"{TYPE}{told.data.reason}",
            "subject": f"{told.data.about.kind}/{told.data.about.name}",
            "time": data["time"],
            "datacontenttype": "application/json",
            "dataschema": SCHEMA,
            "data": data,
        }
    )
