"""Kubeconfig files as people have them, and kubectl's flags over them: what a context is, and one clear error else."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from rollout_lws.errors import UsageError
from rollout_lws.kubeconfig import context as kubeconfig
from rollout_lws.kubeconfig.target import Target

PROGRAM = {"apiVersion": "client.authentication.k8s.io/v1", "command": "login"}


def written(path: Path, cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None) -> str:
    """A kubeconfig with context main of cluster c and user u."""
    content = {
        "current-context": "main",
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:6443", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u"}}],
    }
    path.write_text(yaml.safe_dump(content))
    return str(path)


@pytest.mark.parametrize(
    ("flags", "part", "expected"),
    [
        ({"token": "t"}, "user", {"token": "t"}),
        ({"username": "me", "password": "word"}, "user", {"username": "me", "password": "word"}),
        (
            {"client_certificate": "/a.crt", "client_key": "/a.key"},
            "user",
            {"client-certificate": "/a.crt", "client-key": "/a.key"},
        ),
        (
            {"impersonate": "jane", "impersonate_groups": ("dev", "ops"), "impersonate_uid": "7"},
            "user",
            {"as": "jane", "as-groups": ["dev", "ops"], "as-uid": "7"},
        ),
        ({"certificate_authority": "/ca.crt"}, "cluster", {"certificate-authority": "/ca.crt"}),
        (
            {"insecure_skip_tls_verify": True, "tls_server_name": "api"},
            "cluster",
            {"insecure-skip-tls-verify": True, "tls-server-name": "api"},
        ),
    ],
)
def test_what_a_flag_says_wins(tmp_path: Path, flags: dict[str, Any], part: str, expected: dict[str, Any]) -> None:
    cluster = {"certificate-authority-data": "eA=="}
    user = {"exec": PROGRAM, "client-key-data": "eA==", "as": "joe", "as-groups": ["all"]}
    path = written(tmp_path / "config", cluster, user)
    found = kubeconfig.load(Target(kubeconfig=path, **flags))
    assert expected.items() <= getattr(found, part).items()


def test_a_token_of_the_line_is_not_that_of_a_file(tmp_path: Path) -> None:
    path = written(tmp_path / "config", user={"tokenFile": "/t"})
    assert kubeconfig.load(Target(kubeconfig=path, token="t")).user == {"token": "t"}


def test_a_flags_file_wins_over_the_same_thing_given_as_data(tmp_path: Path) -> None:
    path = written(tmp_path / "config", {"certificate-authority-data": "eA=="})
    found = kubeconfig.load(Target(kubeconfig=path, certificate_authority="/ca.crt"))
    assert "certificate-authority-data" not in found.cluster


def test_another_user_is_impersonated_with_the_groups_of_the_kubeconfig_as_kubectl_does(tmp_path: Path) -> None:
    path = written(tmp_path / "config", user={"as": "joe", "as-groups": ["all"]})
    assert kubeconfig.load(Target(kubeconfig=path, impersonate="jane")).user == {"as": "jane", "as-groups": ["all"]}


def test_an_authority_of_the_line_is_trusted_instead_of_everybody(tmp_path: Path) -> None:
    path = written(tmp_path / "config", {"insecure-skip-tls-verify": True, "certificate-authority-data": "eA=="})
    found = kubeconfig.load(Target(kubeconfig=path, certificate_authority="/ca.crt"))
    assert found.cluster == {"server": "https://127.0.0.1:6443", "certificate-authority": "/ca.crt"}


def test_whoever_trusts_everybody_needs_no_authority(tmp_path: Path) -> None:
    path = written(tmp_path / "config", {"certificate-authority": "/not/there"})
    found = kubeconfig.load(Target(kubeconfig=path, insecure_skip_tls_verify=True))
    assert found.cluster == {"server": "https://127.0.0.1:6443", "insecure-skip-tls-verify": True}


def test_another_server_has_another_name(tmp_path: Path) -> None:
    path = written(tmp_path / "config", {"tls-server-name": "api.internal"})
    assert "tls-server-name" not in kubeconfig.load(Target(kubeconfig=path, server="https://other")).cluster


@pytest.mark.parametrize("flag", ["context", "cluster", "user"])
def test_inside_a_pod_a_name_that_nothing_defines_is_not_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flag: str
) -> None:
    for name in ("token", "namespace", "ca.crt"):
        (tmp_path / name).write_text("x")
    monkeypatch.setattr(kubeconfig, "_SERVICE_ACCOUNT", tmp_path)
    with pytest.raises(UsageError, match=f"no {flag} 'prod-eu'|no context is current"):
        kubeconfig.load(Target(**{flag: "prod-eu"}), {"HOME": "/nowhere", "KUBERNETES_SERVICE_HOST": "10.0.0.1"})


def test_cluster_user_and_server_may_be_of_the_flags_alone(tmp_path: Path) -> None:
    content = yaml.safe_load(Path(written(tmp_path / "config")).read_text())
    content["clusters"].append({"name": "other", "cluster": {"server": "https://other"}})
    content["users"].append({"name": "admin", "user": {"token": "a"}})
    (tmp_path / "config").write_text(yaml.safe_dump(content))
    found = kubeconfig.load(Target(kubeconfig=str(tmp_path / "config"), cluster="other", user="admin"))
    assert (found.server, found.user) == ("https://other", {"token": "a"})


@pytest.mark.parametrize(
    ("server", "meant"),
    [("http://127.0.0.1:8001/", "http://127.0.0.1:8001"), ("10.0.0.1:6443", "https://10.0.0.1:6443")],
)
def test_a_server_needs_no_kubeconfig(tmp_path: Path, server: str, meant: str) -> None:
    found = kubeconfig.load(Target(server=server), {"HOME": str(tmp_path)})
    assert (found.server, found.namespace) == (meant, "default")


def test_several_files_are_one_and_the_first_that_names_an_entry_wins(tmp_path: Path) -> None:
    first = tmp_path / "first"
    first.write_text(yaml.safe_dump({"users": [{"name": "u", "user": {"token": "of the first"}}]}))
    (tmp_path / "sub").mkdir()
    second = written(tmp_path / "sub" / "second", {"certificate-authority": "ca.crt"}, {"token": "of the second"})
    found = kubeconfig.load(Target(), {"KUBECONFIG": os.pathsep.join([str(first), "/nowhere", second])})
    assert found.user == {"token": "of the first"}
    assert found.cluster["certificate-authority"] == str(tmp_path / "sub" / "ca.crt"), "relative to its own file"


@pytest.mark.parametrize(("command", "meant"), [("login", "login"), ("./bin/login", "{}/bin/login"), ("/a/b", "/a/b")])
def test_a_login_program_with_a_path_is_beside_its_kubeconfig(tmp_path: Path, command: str, meant: str) -> None:
    path = written(tmp_path / "config", user={"exec": PROGRAM | {"command": command}})
    program = kubeconfig.load(Target(kubeconfig=path)).user["exec"]["command"]
    assert os.path.normpath(program) == meant.format(tmp_path)


def test_inside_a_pod_without_kubeconfig_it_is_the_pods_service_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, content in (("token", "t\n"), ("namespace", "prod\n"), ("ca.crt", "")):
        (tmp_path / name).write_text(content)
    monkeypatch.setattr(kubeconfig, "_SERVICE_ACCOUNT", tmp_path)
    environment = {"HOME": "/nowhere", "KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"}
    found = kubeconfig.load(Target(impersonate="jane"), environment)
    assert (found.server, found.namespace) == ("https://[fd00::1]:6443", "prod")
    assert found.user == {"tokenFile": str(tmp_path / "token"), "as": "jane"}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"- a\n", "config is no kubeconfig"),
        (b"\xff\xfe\x00", "config cannot be read"),
        (b"a: [", "config cannot be read"),
        (b"current-context: b\ncontexts: [{name: a}]\n", r"has no context 'b' \(known: a\)"),
        (b"contexts: [{name: a, context: {cluster: x}}]\n", "no context is current"),
        (b"current-context: a\ncontexts: [{name: a, context: {cluster: x}}]\n", r"has no cluster 'x' \(known: none\)"),
        (
            b"current-context: a\ncontexts: [{name: a, context: {cluster: x}}]\nclusters: [{name: x}]\n",
            "cluster 'x' has no http",
        ),
    ],
)
def test_what_is_missing_or_no_kubeconfig_is_named(tmp_path: Path, content: bytes, told: str) -> None:
    (tmp_path / "config").write_bytes(content)
    with pytest.raises(UsageError, match=told):
        kubeconfig.load(Target(kubeconfig=str(tmp_path / "config")))


@pytest.mark.parametrize(("given", "named"), [({"KUBECONFIG": "/nowhere"}, "/nowhere"), ({}, "~/.kube/config")])
def test_where_a_kubeconfig_was_looked_for_is_told(tmp_path: Path, given: dict[str, str], named: str) -> None:
    with pytest.raises(UsageError, match=f"no kubeconfig found at {named}"):
        kubeconfig.load(Target(), {"HOME": str(tmp_path), **given})


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("users:\n- name: u\n  user: {token: *hunter2}\n", "config cannot be read: line 3 is no YAML"),
        ("users:\n- user: {token: 0xhunter2, password: !!int hunter2}\n", "line 2 has a value that no kubeconfig has"),
        ("clusters:\n- {name: c, cluster: {server: 'https://bob:hun/ter2@host'}}\n", "cluster 'c' has no http"),
    ],
)
def test_a_kubeconfig_that_is_refused_is_not_quoted(tmp_path: Path, content: str, told: str) -> None:
    file = tmp_path / "config"
    file.write_text(content)
    with pytest.raises(UsageError) as refused:
        kubeconfig.load(Target(kubeconfig=str(file), cluster="c"))
    assert told in str(refused.value)
    assert "ter2" not in str(refused.value)
