"""Logs: a constant message with fields, as text (`key=value`) or as one JSON object per line."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, TextIO

_FIELDS = "fields"


def fields(**values: object) -> dict[str, Any]:
    """For a logger's ``extra``: the variable part of a line, apart from its message."""
    return {_FIELDS: values}


class _Formatter(logging.Formatter):
    def _moment(self, record: logging.LogRecord) -> str:
        return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def _error(self, record: logging.LogRecord) -> str:
        return self.formatException(record.exc_info) if record.exc_info and record.exc_info[0] else ""


class TextFormatter(_Formatter):
    def format(self, record: logging.LogRecord) -> str:
        parts = [self._moment(record), record.levelname, _line(record.getMessage())]
        parts += [f"{key}={_word(value)}" for key, value in getattr(record, _FIELDS, {}).items()]
        error = self._error(record)
        return " ".join(parts) + (f"\n{error}" if error else "")


class JsonFormatter(_Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {"time": self._moment(record), "level": record.levelname.lower(), "message": record.getMessage()}
        line |= {key: value for key, value in getattr(record, _FIELDS, {}).items() if key not in line}
        error = self._error(record)
        return json.dumps(line | ({"error": error} if error else {}), default=str)


def configure(style: str, stream: TextIO | None = None) -> None:
    """Send this package's logs to ``stream`` (stderr by default) in ``style``, text or json."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if style == "json" else TextFormatter())
    logger = logging.getLogger("rollout_lws")
    logger.handlers[:] = [handler]
    logger.setLevel(logging.INFO)
    logger.propagate = False


def _line(text: str) -> str:
    """On one line, without control sequences: a container's output must not look like log lines of the controller."""
    return text if text.isprintable() else json.dumps(text)[1:-1]


def _word(value: object) -> str:
    text = str(value)
    plain = text.isprintable() and not any(char in '"= ' for char in text)
    return text if text and plain else json.dumps(text)
