"""Signatures of Standard Webhooks: the published vector, several keys, and keys that are none."""

from __future__ import annotations

import base64
from datetime import UTC, datetime

import pytest
from standardwebhooks import Webhook

from rollout_lws.notifications import signing
from tests.notifications.receiver import KEY

#: https://github.com/standard-webhooks/standard-webhooks has this one for its libraries.
ID, AT, BODY = "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def written(size: int) -> str:
    return signing.PREFIX + base64.b64encode(bytes(range(size))).decode()


def test_the_published_vector() -> None:
    moment = datetime.fromtimestamp(AT + 0.9, UTC)
    assert signing.headers([signing.key(KEY)], ID, moment, BODY) == {
        "webhook-id": ID,
        "webhook-timestamp": str(AT),
        "webhook-signature": SIGNATURE,
    }


def test_each_key_signs_so_that_receivers_change_over_one_by_one() -> None:
    now, old, new = datetime.now(UTC), written(32), written(24)
    said = signing.headers([signing.key(old), signing.key(new)], ID, now, "ü".encode())
    assert len(said["webhook-signature"].split(" ")) == 2
    for each in (old, new):
        Webhook(each).verify("ü".encode(), said, json_parse=False)


def test_without_keys_there_is_no_signature() -> None:
    assert set(signing.headers([], ID, datetime.now(UTC), BODY)) == {"webhook-id", "webhook-timestamp"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "does not begin with whsec_"),
        ("whsec_not base64!", "no base64"),
        ("whsec_abc", "no base64"),
        (f"whsec_{'A' * 16}*{'A' * 16}", "no base64"),
        (written(23), "23 bytes"),
        (written(65), "65 bytes"),
        ("whsec_", "0 bytes"),
    ],
)
def test_what_is_no_key_is_refused_without_being_told(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as error:
        signing.key(text)
    assert text.removeprefix("whsec_")[:8] not in str(error.value) or text == "whsec_"
