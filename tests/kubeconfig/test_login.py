"""As whom requests are made: every way that a kubeconfig knows, and a login that ends while a gate waits."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from rollout_lws.errors import UsageError
from rollout_lws.kubeconfig.context import Context
from rollout_lws.kubeconfig.login import Certificate, Login

VERSION = "client.authentication.k8s.io/v1"


def login(user: dict[str, Any], cluster: dict[str, Any] | None = None) -> Login:
    return Login(Context("main", "https://api:6443", "prod", cluster or {}, user))


def program(directory: Path, body: str, **more: Any) -> dict[str, Any]:
    """The user of a login program that is told what it is told as ``told``, and counts its runs in a file."""
    path = directory / "login.py"
    path.write_text(
        "import json, os, sys, pathlib\n"
        f"runs = pathlib.Path({str(directory / 'runs')!r})\n"
        "runs.write_text(str(int(runs.read_text() or 0) + 1 if runs.exists() else 1))\n"
        "told = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "def give(**status):\n"
        f"    print(json.dumps({{'apiVersion': {VERSION!r}, 'kind': 'ExecCredential', 'status': status}}))\n" + body
    )
    return {"exec": {"apiVersion": VERSION, "command": sys.executable, "args": [str(path)], **more}}


@pytest.mark.parametrize(
    ("user", "headers"),
    [
        ({}, []),
        ({"token": "t"}, [("Authorization", "Bearer t")]),
        ({"token": "t\n"}, [("Authorization", "Bearer t")]),
        ({"token": 7}, [("Authorization", "Bearer 7")]),
        ({"username": "me", "password": "word"}, [("Authorization", "Basic bWU6d29yZA==")]),
        ({"username": "me"}, [("Authorization", "Basic bWU6")]),
        (
            {"token": "t", "as": "jane", "as-uid": "7", "as-groups": ["dev", "ops"]},
            [
                ("Authorization", "Bearer t"),
                ("Impersonate-User", "jane"),
                ("Impersonate-Uid", "7"),
                ("Impersonate-Group", "dev"),
                ("Impersonate-Group", "ops"),
            ],
        ),
        (
            {"as": "jane", "as-user-extra": {"Example.com/Scopes": ["a", "b"]}},
            [
                ("Impersonate-User", "jane"),
                ("Impersonate-Extra-example.com%2Fscopes", "a"),
                ("Impersonate-Extra-example.com%2Fscopes", "b"),
            ],
        ),
    ],
)
def test_headers_of_a_user(user: dict[str, Any], headers: list[tuple[str, str]]) -> None:
    assert login(user).headers == headers


@pytest.mark.parametrize("name", ["as-uid", "as-groups", "as-user-extra"])
def test_nobody_is_impersonated_by_a_group_alone(name: str) -> None:
    with pytest.raises(UsageError, match="give --as as well"):
        _ = login({"token": "t", name: ["x"]}).headers


def test_a_token_file_is_read_at_each_request_because_it_is_renewed(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one\n")
    known = login({"tokenFile": str(path), "token": "never"})
    assert known.headers == [("Authorization", "Bearer one")]
    path.write_text("two\n")
    assert known.headers == [("Authorization", "Bearer two")]
    assert known.refused()


def test_the_token_of_the_kubeconfig_stands_in_for_a_file_that_is_not_there() -> None:
    assert login({"tokenFile": "/not/there", "token": "t"}).headers == [("Authorization", "Bearer t")]
    with pytest.raises(OSError, match="not/there"):
        _ = login({"tokenFile": "/not/there"}).headers


@pytest.mark.parametrize(
    ("user", "certificate"),
    [
        ({"token": "t"}, None),
        ({"client-certificate": "/c", "client-key": "/k"}, Certificate(path="/c", key_path="/k")),
        ({"client-certificate-data": "Yw==", "client-key-data": "aw=="}, Certificate(pem="c", key_pem="k")),
        ({"client-certificate-data": "Yw==", "client-key": "/k"}, Certificate(pem="c", key_path="/k")),
        ({"client-certificate": "/c", "client-key-data": "aw=="}, Certificate(path="/c", key_pem="k")),
    ],
)
def test_certificates_are_of_files_or_of_the_kubeconfig_itself(
    user: dict[str, Any], certificate: Certificate | None
) -> None:
    assert login(user).certificate == certificate


def test_a_login_program_is_run_once_until_what_it_gave_expires(tmp_path: Path) -> None:
    known = login(program(tmp_path, "give(token='t', expirationTimestamp='2999-01-01T00:00:00Z')"))
    assert [known.headers for _ in range(3)] == [[("Authorization", "Bearer t")]] * 3
    assert (tmp_path / "runs").read_text() == "1"
    known = login(program(tmp_path, "give(token='t', expirationTimestamp='2020-01-01T00:00:00Z')"))
    assert [known.headers for _ in range(3)] == [[("Authorization", "Bearer t")]] * 3
    assert (tmp_path / "runs").read_text() == "4"


def test_a_login_that_is_refused_is_asked_for_again(tmp_path: Path) -> None:
    known = login(program(tmp_path, "give(token=runs.read_text())"))
    assert known.headers == [("Authorization", "Bearer 1")]
    assert known.refused()
    assert known.headers == [("Authorization", "Bearer 2")]
    assert not login({"token": "t"}).refused(), "the same token would be refused again"


def test_a_login_program_may_give_a_certificate(tmp_path: Path) -> None:
    known = login(program(tmp_path, "give(clientCertificateData='c', clientKeyData='k')"))
    assert (known.headers, known.certificate) == ([], Certificate(pem="c", key_pem="k"))


def test_a_login_program_is_told_of_the_cluster_where_it_wants_to_be(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("ca")
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "a"}}
    cluster = {
        "certificate-authority": str(tmp_path / "ca.crt"),
        "tls-server-name": "api",
        "extensions": [{"name": "other", "extension": 1}, extension],
    }
    asked = "give(token=json.dumps(told['spec']))"
    token = login(program(tmp_path, asked, provideClusterInfo=True), cluster).headers[0][1]
    assert json.loads(token.removeprefix("Bearer ")) == {
        "interactive": False,
        "cluster": {
            "server": "https://api:6443",
            "tls-server-name": "api",
            "certificate-authority-data": "Y2E=",
            "config": {"audience": "a"},
        },
    }
    token = login(program(tmp_path, asked), cluster).headers[0][1]
    assert json.loads(token.removeprefix("Bearer ")) == {"interactive": False}


def test_a_login_program_has_the_environment_that_its_entry_says(tmp_path: Path) -> None:
    user = program(tmp_path, "give(token=os.environ['PROFILE'])", env=[{"name": "PROFILE", "value": "prod"}])
    assert login(user).headers == [("Authorization", "Bearer prod")]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("sys.exit(3)", "login program failed: .*exit status 3.*; run it by hand: "),
        ("print('hello')", "login program failed: .*; run it by hand"),
        ("print('[]')", "gave neither a token nor a certificate; run it by hand"),
        ("give()", "gave neither a token nor a certificate; run it by hand"),
    ],
)
def test_a_login_program_that_fails_is_named_with_the_way_to_see_why(tmp_path: Path, body: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        _ = login(program(tmp_path, body)).headers


@pytest.mark.parametrize("body", ["sys.exit(3)", "print('hello')", "give()"])
def test_arguments_of_a_login_program_may_be_secret_and_are_not_told(tmp_path: Path, body: str) -> None:
    user = program(tmp_path, body)
    user["exec"]["args"] = [*user["exec"].get("args", ()), "--client-secret=hunter2"]
    with pytest.raises(UsageError) as failed:
        _ = login(user).headers
    assert "hunter2" not in str(failed.value)
    assert str(failed.value).endswith(", with the arguments that the kubeconfig gives it")


def test_a_login_program_that_is_not_there_is_named_with_its_hint() -> None:
    user = {"exec": {"command": "no-such-login", "installHint": "get it from example.org"}}
    with pytest.raises(UsageError, match=r"'no-such-login' is not installed: get it from example\.org"):
        _ = login(user).headers


def test_a_login_program_that_has_to_ask_needs_a_terminal(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="run this on a terminal"):
        _ = login(program(tmp_path, "give(token='t')", interactiveMode="Always")).headers


@pytest.mark.parametrize(
    "known", [{"token": "t"}, {"username": "me"}, {"tokenFile": "/t", "token": "t"}, {"client-certificate": "/c"}]
)
def test_a_login_program_is_not_run_where_the_kubeconfig_has_something_else(
    tmp_path: Path, known: dict[str, str]
) -> None:
    user = known | program(tmp_path, "give(token='of the program')")
    assert ("Authorization", "Bearer of the program") not in login(user).headers
    assert login(user).certificate == login(known).certificate
    assert not (tmp_path / "runs").exists()


def test_a_login_program_that_nobody_waits_for_is_ended(tmp_path: Path) -> None:
    user = program(tmp_path, "import time\ntime.sleep(60)", interactiveMode="IfAvailable")
    began = time.monotonic()
    with pytest.raises(UsageError, match=r"login program failed: .*timed out"):
        _ = Login(Context("main", "https://api", "prod", {}, user), patience=0.3).headers
    assert time.monotonic() - began < 30
