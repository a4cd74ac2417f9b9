"""The version that several workloads have together."""

from __future__ import annotations

from rollout_lws.targets.leader_worker_set import FORMAT
from rollout_lws.targets.version import MISSING, Version, hashes_of, version_together, with_first


def version(name: str) -> Version:
    return Version(name, b"{}", b"{}", FORMAT)


def test_it_is_told_by_the_hashes_of_all() -> None:
    found = version_together(version("aa"), [version("bb"), None])
    assert hashes_of(found.template_hash) == ("aa", "bb", MISSING)
    assert found.document == b"{}"


def test_of_one_it_is_its_own() -> None:
    one = version("aa")
    assert version_together(one, []) is one and hashes_of("aa") == ("aa",)


def test_another_first_one_leaves_the_others() -> None:
    assert with_first("aa-bb-cc", version("dd")).template_hash == "dd-bb-cc"
    assert with_first("aa", version("dd")).template_hash == "dd"
