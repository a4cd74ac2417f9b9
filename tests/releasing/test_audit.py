"""The audit is never green for want of an answer, and what it lets pass has a reason and an end."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from tests.releasing import audit
from tests.releasing.audit import Advisory, Ignored, Looked, ignored, judged, packages, read, together

TODAY = date(2026, 3, 1)
FOUND = Advisory("aiohttp", "3.14.5", ("GHSA-1111", "CVE-2026-1"), ("3.14.6",))
SEEN = Looked(frozenset({"aiohttp"}), {}, (FOUND,))


def test_what_is_ignored_has_a_reason_a_package_of_ours_and_an_end() -> None:
    ours = packages((audit.ROOT / "requirements").glob("*.txt"))
    for entry in ignored(audit.IGNORED.read_text()):
        assert len(entry.reason.split()) >= 4, entry
        assert entry.package in ours, entry
        assert entry.until <= datetime.now(UTC).date() + timedelta(days=184), entry


def test_the_example_in_the_list_can_be_copied() -> None:
    lines = audit.IGNORED.read_text().splitlines()
    example = "\n".join(line.removeprefix("# ") for line in lines[lines.index("# [[ignored]]") :])
    (entry,) = ignored(example)
    assert isinstance(entry.until, date)


def test_a_report_is_read_package_by_package() -> None:
    vulnerable = {"id": "GHSA-1111", "aliases": ["CVE-2026-1"], "fix_versions": ["3.14.6"], "description": "x"}
    report = {
        "dependencies": [
            {"name": "aiohttp", "version": "3.14.5", "vulns": [vulnerable]},
            {"name": "click", "version": "8.5.1", "vulns": []},
            {"name": "rich", "skip_reason": "not found: rich (15.0.0)"},
        ],
        "fixes": [],
    }
    assert read(report) == Looked(frozenset({"aiohttp", "click"}), {"rich": "not found"}, (FOUND,))


@pytest.mark.parametrize(
    ("let_pass", "fails"),
    [
        (
            [],
            [
                "aiohttp 3.14.5 has GHSA-1111 = CVE-2026-1: raise it to 3.14.6 in pyproject.toml, then 'make lock'; "
                "or say why not in ignored-advisories.toml"
            ],
        ),
        ([Ignored("CVE-2026-1", "aiohttp", "only its server is concerned", TODAY)], []),
        (
            [Ignored("CVE-2026-1", "aiohttp", "only its server is concerned", TODAY - timedelta(days=1))],
            [
                "aiohttp 3.14.5 has GHSA-1111 = CVE-2026-1, ignored until 2026-02-28: "
                "look again whether 'only its server is concerned' still holds"
            ],
        ),
    ],
)
def test_what_is_found_fails_unless_it_is_ignored_today(let_pass: list[Ignored], fails: list[str]) -> None:
    assert judged(SEEN, let_pass, TODAY) == (fails, [])


def test_an_advisory_of_another_package_is_not_let_pass() -> None:
    fails, _ = judged(SEEN, [Ignored("GHSA-1111", "yarl", "another one", TODAY)], TODAY)
    assert len(fails) == 1


def test_what_is_fixed_is_ignored_no_longer() -> None:
    clean = Looked(frozenset({"aiohttp"}), {}, ())
    fails, _ = judged(clean, [Ignored("GHSA-1111", "aiohttp", "reason", TODAY)], TODAY)
    assert fails == ["GHSA-1111 of aiohttp is ignored and not there: take it out of ignored-advisories.toml"]


def test_what_could_not_be_looked_up_is_told() -> None:
    looked = Looked(frozenset({"click"}), {"aiohttp": "Dependency not found", "yarl": "Dependency not found"}, ())
    fails, notes = judged(looked, [Ignored("GHSA-1111", "aiohttp", "reason", TODAY)], TODAY)
    assert fails == []
    assert notes == [
        "skipped: 2 of 3 packages could not be looked up (Dependency not found); "
        "run 'make audit' where pypi.org or api.osv.dev answers"
    ]


def test_one_service_that_knows_is_enough_and_tells_a_thing_once() -> None:
    nobody = Looked(frozenset(), {"aiohttp": "away", "yarl": "away"}, ())
    assert together([nobody, nobody]).unknown == {"aiohttp": "away; away", "yarl": "away; away"}
    other_name = Advisory("aiohttp", "3.14.5", ("PYSEC-1", "GHSA-1111"), ("3.14.6",))
    assert together([nobody, SEEN]) == Looked(frozenset({"aiohttp"}), {"yarl": "away"}, (FOUND,))
    assert together([SEEN, Looked(frozenset({"aiohttp"}), {}, (other_name,))]).advisories == (FOUND,)


def test_a_tool_that_fails_leaves_every_package_unknown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pinned = tmp_path / "run.txt"
    pinned.write_text("aiohttp==3.14.5 \\\n    --hash=sha256:00\nyarl==1.25.1 ; sys_platform == 'linux' \\\n")
    monkeypatch.setattr("sys.executable", "/bin/false")
    looked = audit.look_up("pypi", [pinned])
    assert looked == Looked(
        frozenset(), {"aiohttp": "pypi: pip-audit exited with 1", "yarl": "pypi: pip-audit exited with 1"}, ()
    )
    assert judged(looked, (), TODAY)[1]
