"""Kubeconfig files as people have them: what is understood, and one clear error for what is not."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from rollout_lws.cli import kubeconfig
from rollout_lws.errors import UsageError

NO_PEM = base64.b64encode(b"no certificate").decode()


def written(folder: Path, cluster: dict[str, Any], user: dict[str, Any]) -> str:
    content = {
        "current-context": "main",
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:6443", **cluster}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u"}}],
    }
    path = folder / "config"
    path.write_text(yaml.safe_dump(content))
    return str(path)


def test_the_user_to_impersonate_is(tmp_path: Path) -> None:
    access = kubeconfig.load(written(tmp_path, {}, {"token": "t", "as": "jane"}), None)
    assert access.headers == {"Authorization": "Bearer t", "Impersonate-User": "jane"}


@pytest.mark.parametrize(
    ("cluster", "user"),
    [
        ({"certificate-authority": "/not/there"}, {}),
        ({"certificate-authority-data": NO_PEM}, {}),
        ({"certificate-authority-data": "a"}, {}),
        ({}, {"tokenFile": "/not/there"}),
        ({}, {"client-certificate": "/not/there"}),
        ({}, {"client-certificate-data": NO_PEM, "client-key-data": NO_PEM}),
    ],
)
def test_credentials_that_cannot_be_read_are_one_clear_error(
    tmp_path: Path, cluster: dict[str, Any], user: dict[str, Any]
) -> None:
    with pytest.raises(UsageError, match=r"of context 'main' cannot be read: .*; correct the kubeconfig"):
        kubeconfig.load(written(tmp_path, cluster, user), None)


@pytest.mark.parametrize(
    ("cluster", "user", "named"),
    [
        ({"proxy-url": "http://proxy"}, {}, "proxy-url"),
        ({"tls-server-name": "api.internal"}, {}, "tls-server-name"),
        ({}, {"as": "jane", "as-groups": ["dev"]}, "as-groups"),
    ],
)
def test_what_decides_where_and_as_whom_requests_go_is_never_passed_over(
    tmp_path: Path, cluster: dict[str, Any], user: dict[str, Any], named: str
) -> None:
    with pytest.raises(UsageError, match=f"has a {named}, which rollout-lws cannot use"):
        kubeconfig.load(written(tmp_path, cluster, user), None)


def test_a_file_that_is_no_kubeconfig_is_named(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("- a\n")
    with pytest.raises(UsageError, match="config is no kubeconfig"):
        kubeconfig.load(str(tmp_path / "config"), None)


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "config").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="config cannot be read"):
        kubeconfig.load(str(tmp_path / "config"), None)


@pytest.mark.parametrize(("given", "named"), [({"KUBECONFIG": "/nowhere"}, "/nowhere"), ({}, "~/.kube/config")])
def test_where_a_kubeconfig_was_looked_for_is_told(tmp_path: Path, given: dict[str, str], named: str) -> None:
    with pytest.raises(UsageError, match=f"no kubeconfig found at {named}"):
        kubeconfig.load(None, None, {"HOME": str(tmp_path), **given})
