"""Versions: our hash follows what a person changes, and nothing else; and what a release reads inside a template."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout_lws.targets.table import stored_version
from rollout_lws.targets.version import Version, short_hash
from tests.workload.build import lws

CONTAINER = {
    "name": "server",
    "image": "model:1",
    "args": ["--tensor-parallel", "8"],
    "env": [{"name": "A", "value": "1"}, {"name": "B", "value": ""}],
    "resources": {"limits": {"nvidia.com/gpu": "8"}},
}
TEMPLATE: dict[str, Any] = {
    "size": 2,
    "restartPolicy": "RecreateGroupOnPodRestart",
    "leaderTemplate": {"metadata": {"labels": {"role": "leader"}}, "spec": {"containers": [CONTAINER]}},
    "workerTemplate": {"metadata": {}, "spec": {"containers": [{"name": "server", "image": "model:1"}]}},
}
NETWORK = {"subdomainPolicy": "Shared"}


def version(template: Any = TEMPLATE, network: Any = NETWORK, **more: Any) -> Version:
    return lws(template=template, network=network, **more).version


def changed(*path: str | int, to: Any) -> dict[str, Any]:
    """TEMPLATE with the member at ``path`` set, or removed when it is set to ``...``."""
    copy: dict[str, Any] = json.loads(json.dumps(TEMPLATE))
    place: Any = copy
    for step in path[:-1]:
        place = place[step]
    if to is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = to
    return copy


LEADER = ("leaderTemplate", "spec", "containers", 0)
_CHANGES: dict[str, dict[str, Any]] = {
    "size": changed("size", to=3),
    "restartPolicy": changed("restartPolicy", to="None"),
    "image of leaders": changed(*LEADER, "image", to="model:2"),
    "image of workers": changed("workerTemplate", "spec", "containers", 0, "image", to="model:2"),
    "order of arguments": changed(*LEADER, "args", to=["8", "--tensor-parallel"]),
    "order of variables": changed(*LEADER, "env", to=[{"name": "B", "value": ""}, {"name": "A", "value": "1"}]),
    "a further variable": changed(*LEADER, "env", to=[*CONTAINER["env"], {"name": "C"}]),  # type: ignore[misc]
    "a limit": changed(*LEADER, "resources", "limits", "nvidia.com/gpu", to="4"),
    "a label of the pods": changed("leaderTemplate", "metadata", "labels", "role", to="head"),
    "an annotation of the pods": changed("workerTemplate", "metadata", "annotations", to={"restartedAt": "now"}),
    "no leader template": changed("leaderTemplate", to=...),
    "an empty object more": changed(*LEADER, "securityContext", to={}),
    "an empty text": changed(*LEADER, "image", to=""),
    "false instead of absent": changed("leaderTemplate", "spec", "hostNetwork", to=False),
    "subGroupPolicy": changed("subGroupPolicy", to={"subGroupSize": 1}),
    "placementPolicy": changed("placementPolicy", to={"type": "ExclusiveTopology", "topology": "zone"}),
    "volumeClaimTemplates": changed("volumeClaimTemplates", to=[{"metadata": {"name": "cache"}}]),
}


@pytest.mark.parametrize("template", _CHANGES.values(), ids=_CHANGES)
def test_each_change_a_person_can_see_is_another_version(template: dict[str, Any]) -> None:
    assert version(template).template_hash != version().template_hash


def test_all_those_versions_differ_from_each_other() -> None:
    hashes = {version(template).template_hash for template in _CHANGES.values()} | {version().template_hash}
    hashes |= {
        version(network=None).template_hash,
        version(network={"subdomainPolicy": "UniquePerReplica"}).template_hash,
    }
    assert len(hashes) == len(_CHANGES) + 3


@pytest.mark.parametrize(
    "same",
    [
        version(dict(reversed(TEMPLATE.items()))),
        version(changed(*LEADER, to=dict(reversed(CONTAINER.items())))),
        version(changed("subGroupPolicy", to=None)),
        version(changed("leaderTemplate", "metadata", "creationTimestamp", to=None)),
        version(labels={"team": "a"}, annotations={"x/y": "z"}),
        version(replicas=9, partition=3, unavailable="50%", surge=2, generation=99),
        stored_version({"networkConfig": NETWORK, "leaderWorkerTemplate": TEMPLATE}),
        stored_version({"networkConfig": NETWORK, "leaderWorkerTemplate": TEMPLATE, "replicas": 3}),
        stored_version(
            {
                "networkConfig": {**NETWORK, "$patch": "replace"},
                "leaderWorkerTemplate": {"$patch": "replace", **TEMPLATE},
            }
        ),
    ],
)
def test_the_same_version_written_otherwise_has_the_same_hash(same: Version) -> None:
    assert same == version()


def test_the_limit_of_restarts_is_kept_with_a_version_and_makes_none() -> None:
    limited = version(changed("maxGroupRestarts", to=3))
    assert limited.template_hash == version().template_hash
    assert limited.members["leaderWorkerTemplate"]["maxGroupRestarts"] == 3


@pytest.mark.parametrize(
    "template",
    [
        changed(*LEADER, "resources", "limits", "nvidia.com/gpu", to=8),
        changed(*LEADER, "resources", "limits", "nvidia.com/gpu", to="8000m"),
        changed("workerTemplate", "metadata", to=...),
        changed("workerTemplate", "spec", "containers", 0, "resources", to={}),
        changed(*LEADER, "volumeMounts", to=[]),
    ],
    ids=["a number for a text", "thousandths", "no metadata", "empty resources", "an empty list more"],
)
def test_what_leader_worker_set_takes_for_the_same_has_the_same_hash(template: dict[str, Any]) -> None:
    assert version(template).template_hash == version().template_hash


def test_white_space_in_stored_json_does_not_matter() -> None:
    found = lws(template=TEMPLATE, network=NETWORK)
    written = msgspec.Raw(json.dumps(TEMPLATE, indent=2).encode())
    spaced = msgspec.structs.replace(found, spec=msgspec.structs.replace(found.spec, leader_worker_template=written))
    assert spaced.version == found.version


@pytest.mark.parametrize("network", [None, ...])
def test_a_network_configuration_of_null_is_an_absent_one(network: Any) -> None:
    members = {"leaderWorkerTemplate": TEMPLATE} | ({} if network is ... else {"networkConfig": network})
    assert stored_version(members) == version(network=None)
    assert "networkConfig" not in version(network=None).members


def test_nulls_inside_lists_are_values() -> None:
    assert version(changed("list", to=[None])).template_hash != version(changed("list", to=[])).template_hash


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(min_size=1, max_size=3), _JSON, max_size=4))
def test_a_version_read_back_from_its_own_document_is_itself(template: dict[str, Any]) -> None:
    found = version(template)
    assert stored_version(found.members).template_hash == found.template_hash or "$patch" in template
    assert len(found.template_hash) == 10
    assert int(found.template_hash, 16) >= 0


@pytest.mark.parametrize(("template", "size"), [({}, 1), ({"size": None}, 1), ({"size": 1}, 1), ({"size": 16}, 16)])
def test_a_group_has_one_pod_unless_size_says_otherwise(template: dict[str, Any], size: int) -> None:
    assert version(template).size == size


def pods(*containers: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"containers": list(containers)}}


def gpus(amount: Any, name: str = "nvidia.com/gpu") -> dict[str, Any]:
    return {"name": "server", "resources": {"limits": {name: amount}}}


@pytest.mark.parametrize(
    ("template", "accelerators"),
    [
        ({"size": 4, "workerTemplate": pods(gpus("8"))}, 32),
        ({"size": 4, "leaderTemplate": pods({"name": "server"}), "workerTemplate": pods(gpus("8"))}, 24),
        ({"size": 4, "leaderTemplate": pods(gpus(1)), "workerTemplate": pods(gpus("8"), gpus("1"))}, 28),
        ({"size": 1, "leaderTemplate": pods(gpus("8")), "workerTemplate": pods(gpus("4"))}, 8),
        ({"workerTemplate": pods(gpus("4", "google.com/tpu"))}, 4),
        ({"workerTemplate": pods(gpus("2", "amd.com/gpu"), gpus("3", "rebellions.ai/npu"))}, 5),
        ({"workerTemplate": pods(gpus("9" * 5000), gpus("\u00b2"), gpus("4"))}, 4),
        ({"workerTemplate": pods(gpus("2", "cpu"), gpus("64", "rdma/hca"))}, 0),
        ({"workerTemplate": pods({"name": "server", "resources": None})}, 0),
        ({"workerTemplate": pods({"name": "server", "resources": {"requests": {"nvidia.com/gpu": "8"}}})}, 0),
        ({"size": 2, "leaderTemplate": pods(gpus("2")), "workerTemplate": {}}, 2),
        ({}, 0),
    ],
)
def test_accelerators_of_a_group_are_the_limits_of_its_pods(template: dict[str, Any], accelerators: int) -> None:
    assert version(template).accelerators == accelerators


@pytest.mark.parametrize(
    ("probes", "seconds", "deadline"),
    [
        ([None], 0, 3600),
        ([{}], 0, 3600),
        ([{"httpGet": {"path": "/"}}], 30, 3600),
        ([{"periodSeconds": 10, "failureThreshold": 120}], 1200, 3600),
        ([{"periodSeconds": 10, "failureThreshold": 271}], 2710, 3610),
        ([{"periodSeconds": 10, "failureThreshold": 360, "initialDelaySeconds": 60}], 3660, 4560),
        ([{"periodSeconds": 10, "failureThreshold": 10}, {"periodSeconds": 20, "failureThreshold": 180}], 3600, 4500),
        ([{"periodSeconds": 2**31 - 1, "failureThreshold": 2**31 - 1}], 2**31 - 1, 2**31 + 899),
    ],
)
def test_the_deadline_gives_the_longest_start_up_probe_its_time(
    probes: list[dict[str, Any] | None], seconds: float, deadline: float
) -> None:
    containers = [{"name": f"c{at}", "startupProbe": probe} for at, probe in enumerate(probes)]
    for template in (
        {"workerTemplate": pods(*containers)},
        {"leaderTemplate": pods(*containers), "workerTemplate": pods()},
        {"leaderTemplate": pods(), "workerTemplate": pods(*containers)},
    ):
        found = version(template)
        assert (found.start_up_seconds, found.progress_deadline_seconds) == (seconds, deadline)


@given(st.text(), st.text())
def test_short_hashes_fit_into_names_and_tell_texts_apart(one: str, other: str) -> None:
    assert len(short_hash(one)) == 6
    assert set(short_hash(one)) <= set("abcdefghijklmnopqrstuvwxyz234567")
    assert (short_hash(one) == short_hash(other)) == (one == other)
