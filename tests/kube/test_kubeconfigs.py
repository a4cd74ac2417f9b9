"""The part of kubernetes-asyncio that we use, without the rest, and without harm to whoever wants all of it.

In processes of their own: what one test has imported is there for all others.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.kube.test_connection import kubeconfig

_CONNECT = """
import asyncio, sys
from rollout_lws.kube.connection import connect

async def connected(path):
    connection = await connect(path)
    await connection.close()
    return connection

connection = asyncio.run(connected(sys.argv[1]))
"""


def said(code: str, path: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", _CONNECT + code, path], capture_output=True, check=True, text=True)
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_to_connect_imports_none_of_the_models(tmp_path: Path) -> None:
    code = "print(*(name for name in sys.modules if name.startswith('kubernetes_asyncio')), sep='\\n')"
    imported = said(code, kubeconfig(tmp_path, "http://127.0.0.1:1"))
    assert "kubernetes_asyncio.config.kube_config" in imported
    assert [name for name in imported if ".models" in name or ".api" in name] == []


def test_who_imports_the_whole_library_afterwards_gets_it_and_the_same_configuration(tmp_path: Path) -> None:
    code = """
from kubernetes_asyncio import client, config
print(issubclass(client.V1Pod, object), isinstance(connection._configuration, client.Configuration))
print(config.load_kube_config.__globals__["Configuration"] is client.Configuration)
connection = asyncio.run(connected(sys.argv[1]))
"""
    assert said(code, kubeconfig(tmp_path, "http://127.0.0.1:1")) == ["True True", "True"]


def test_where_the_whole_library_is_imported_already_it_is_used(tmp_path: Path) -> None:
    code = """
for name in [name for name in sys.modules if name.startswith("kubernetes_asyncio")]:
    del sys.modules[name]
import kubernetes_asyncio
connection = asyncio.run(connected(sys.argv[1]))
print(isinstance(connection._configuration, kubernetes_asyncio.client.Configuration))
"""
    assert said(code, kubeconfig(tmp_path, "http://127.0.0.1:1")) == ["True"]
