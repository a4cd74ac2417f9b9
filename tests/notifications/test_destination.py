"""Directories of destinations: what is read, and one clear error for what is wrong, without a secret in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rollout_lws.errors import UsageError
from rollout_lws.notifications.destination import Format, read
from tests.notifications.receiver import KEY, directory

SECRET = "https://hooks.slack.invalid/services/T000/B000/verysecret"


def test_a_url_is_enough(tmp_path: Path) -> None:
    found = read(directory(tmp_path / "hook", "http://broker.knative/default", keys=""))
    assert (found.name, found.format, found.url) == ("hook", Format.CLOUDEVENTS, "http://broker.knative/default")
    assert (found.keys, found.headers, found.ca) == ((), (), "")


def test_all_files_are_read(tmp_path: Path) -> None:
    where = directory(
        tmp_path / "hook",
        "https://example.invalid:8443/in?tenant=a",
        keys=f"{KEY}\n\n{KEY}",
        headers="Authorization: Bearer abc.def\nX-Tenant:  a b ",
    )
    found = read(where)
    assert len(found.keys) == 2
    assert found.headers == (("Authorization", "Bearer abc.def"), ("X-Tenant", "a b"))
    assert found.host == "https://example.invalid:8443"


def test_its_text_has_no_secret(tmp_path: Path) -> None:
    found = read(directory(tmp_path / "hook", SECRET, headers="Authorization: Bearer verysecret"))
    assert "verysecret" not in f"{found}{found!r}{found.host}"
    assert KEY[6:] not in repr(found)


@pytest.mark.parametrize(
    "url",
    [
        "hooks.slack.invalid/verysecret",
        "ftp://example.invalid/verysecret",
        "https://user:verysecret@example.invalid/",
        "https://example.invalid/verysecret#x",
        "https:///verysecret",
        "https://example.invalid:99999/verysecret",
        "https://example.invalid/very secret",
        "https://example.invalid/a\nhttps://example.invalid/verysecret",
        "https://ex\u00e4mple.invalid/verysecret",
        "https://[::1/verysecret",
    ],
)
def test_what_is_no_url_is_refused_and_not_told(url: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="url: is no URL of a receiver") as error:
        read(directory(tmp_path / "hook", url))
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"url": ""}, "url: there is no such file: write the receiver's URL to it"),
        ({"format": "teams"}, "format: write one of cloudevents, slack"),
        ({"keys": "verysecret"}, "signing-keys: key 1 does not begin with whsec_"),
        ({"keys": f"{KEY}\nwhsec_verysecret"}, "signing-keys: key 2"),
        ({"keys": "\n".join([KEY] * 9)}, "signing-keys: has 9 keys"),
        ({"headers": "verysecret"}, "headers: line 1 is no header"),
        ({"only": "Completed\nDone"}, "only: line of Done: write reasons of Events"),
        ({"only": " "}, "only: line of nothing: write reasons of Events"),
        ({"headers": "A: b\nAuthorization: verysecret\x07"}, "headers: line 2 is no header"),
        ({"headers": "A: very\u00e4secret"}, "headers: line 1 is no header"),
        ({"headers": "Webhook-Id: verysecret"}, "headers: line 1: Webhook-Id is the controller's to say"),
        ({"headers": "Host: verysecret"}, "headers: line 1: Host is the controller's to say"),
        ({"ca_crt": "verysecret"}, "ca.crt: has no certificates"),
        ({"format": "slack"}, "signing-keys: only the format cloudevents is signed"),
    ],
)
def test_one_error_names_the_file_and_tells_none_of_it(files: dict[str, str], why: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=why) as error:
        read(directory(tmp_path / "hook", **files))
    assert str(tmp_path / "hook") in str(error.value)
    assert "secret" not in str(error.value)


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no such directory"):
        read(str(tmp_path / "hook"))


def test_a_file_of_megabytes_or_of_no_text_is_refused(tmp_path: Path) -> None:
    where = Path(directory(tmp_path / "hook"))
    (where / "headers").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="headers is no text"):
        read(str(where))
    (where / "headers").write_text("A: b\n" * 200_000)
    with pytest.raises(UsageError, match="more than 256 KiB"):
        read(str(where))
    (where / "headers").unlink()
    (where / "headers").mkdir()
    with pytest.raises(UsageError, match="headers cannot be read"):
        read(str(where))
