"""What programs of nodes are told, as far as it must fit together: addresses, paths, and who they are."""

from __future__ import annotations

import ipaddress
import json
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.e2e import flags
from tests.nodes import cgroups, images, manifests, network, settings

IDENTITY = settings.Identity(*(Path("/run", name) for name in ("kubelet", "proxy", "crt", "key", "ca")))


@pytest.mark.parametrize("number", [1, 2, 9])
def test_a_node_and_its_pods_have_addresses_of_their_own(number: int) -> None:
    pods = ipaddress.ip_network(network.pods_of(number))
    assert pods.subnet_of(ipaddress.ip_network(network.PODS))  # type: ignore[arg-type]
    assert not any(pods.overlaps(ipaddress.ip_network(network.pods_of(other))) for other in range(10, 20))
    assert ipaddress.ip_address(network.node_address(number)) in ipaddress.ip_network(
        f"{network.PLANE}/24", strict=False
    )
    plugins = json.loads(settings.pods_network(number))["plugins"]
    assert plugins[0]["ipam"]["ranges"] == [[{"subnet": str(pods)}]]


def test_services_are_in_the_range_that_the_api_server_gives_them() -> None:
    services = ipaddress.ip_network(flags.SERVICE_RANGE)
    assert ipaddress.ip_address(settings.DNS_SERVICE) in services
    assert str(services[1]) == flags.API_SERVICE
    assert not services.overlaps(ipaddress.ip_network(network.PODS))


def test_a_kubelet_serves_and_logs_in_as_its_node(tmp_path: Path) -> None:
    told = yaml.safe_load(settings.kubelet(2, IDENTITY, "/run-1/n2", tmp_path))
    assert (told["address"], told["cgroupRoot"]) == (network.node_address(2), "/run-1/n2")
    assert told["clusterDNS"] == [settings.DNS_SERVICE]
    assert told["authentication"]["x509"]["clientCAFile"] == str(IDENTITY.authority)
    # A kubelet renews its lease four times in this.
    assert told["nodeLeaseDurationSeconds"] < flags.LOST_SECONDS


def test_a_runtime_knows_its_image_for_pods_and_keeps_to_its_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bridge").touch()
    monkeypatch.setattr(settings, "_CNI_PROGRAMS", (str(tmp_path),))
    told = tomllib.loads(settings.containerd(tmp_path))
    runtime = told["plugins"]["io.containerd.grpc.v1.cri"]
    assert runtime["sandbox_image"] == images.PAUSE
    assert runtime["cni"] == {"bin_dir": str(tmp_path), "conf_dir": f"{tmp_path}/networks"}
    assert told["plugins"]["io.containerd.internal.v1.opt"]["path"].startswith(str(tmp_path))


def test_the_dns_runs_an_image_that_is_there() -> None:
    found = [write.body for write in manifests.dns() if write.body["kind"] == "Deployment"]
    assert [each["spec"]["template"]["spec"]["containers"][0]["image"] for each in found] == [images.DNS]


def test_a_nodes_groups_are_in_each_hierarchy_and_go_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Control groups are played by directories."""
    for hierarchy in ("cpuset", "systemd", "unified"):
        (tmp_path / hierarchy).mkdir()
    mounts = tmp_path / "mounts"
    kinds = {"cpuset": "cgroup", "systemd": "cgroup", "unified": "cgroup2"}
    mounts.write_text("".join(f"cgroup {tmp_path / name} {kind} rw 0 0\n" for name, kind in kinds.items()))
    monkeypatch.setattr(cgroups, "_MOUNTS", mounts)
    cgroups.make("run-1", "n1")
    assert [each.name for each in cgroups.hierarchies()] == ["cpuset", "systemd"]
    assert {str(each.relative_to(tmp_path)) for each in cgroups.left("run-")} == {"cpuset/run-1", "systemd/run-1"}
    # As a runtime makes it.
    (tmp_path / "unified/run-1/n1/kubepods").mkdir(parents=True)
    cgroups.remove("run-1")
    assert cgroups.left("run-") == []
