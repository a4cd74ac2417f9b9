"""A line of the log is one line of ours, whatever a container or a person has put into its words."""

from __future__ import annotations

import io
import json
import logging

import pytest

from rollout_lws import logs

HOSTILE = 'died\n2026-01-01T00:00:00.000Z INFO all is well\r\x1b[2J\u2028 a="b"'


@pytest.fixture(params=["text", "json"])
def lines(request: pytest.FixtureRequest) -> list[str]:
    stream = io.StringIO()
    logger = logging.getLogger("rollout_lws")
    before = (logger.handlers[:], logger.level, logger.propagate)
    try:
        logs.configure(request.param, stream=stream)
        logger.info(HOSTILE, extra=logs.fields(rollout="llama", error=HOSTILE, escape="\x1b[2J", empty=""))
    finally:
        logger.handlers[:], logger.level, logger.propagate = before
    return stream.getvalue().removesuffix("\n").split("\n")


def test_one_line_without_control_characters(lines: list[str]) -> None:
    (line,) = lines
    assert line.isprintable()
    if line.startswith("{"):
        assert json.loads(line)["error"] == json.loads(line)["message"] == HOSTILE
    else:
        assert " rollout=llama " in line
        assert ' escape="\\u001b[2J" ' in line
        assert line.endswith(' empty=""')
