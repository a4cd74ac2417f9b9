"""`make audit`: known vulnerabilities of everything in requirements/, and what is wrong with the workflows.

`pip-audit` ends well when it could look nothing up, so what it says is read here, package by package: one that was not
looked up is told of, and with `--require` it is an error.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
IGNORED = ROOT / "requirements/ignored-advisories.toml"
#: Where advisories are looked up: the second is asked when the first does not know every package.
SERVICES = ("pypi", "osv")
#: Seconds for one service; a network that swallows packets must not hold up whoever checks.
_PATIENCE = 120


@dataclass(frozen=True, slots=True)
class Advisory:
    package: str
    version: str
    #: Its id first, then what others call it.
    names: tuple[str, ...]
    fixed_in: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Looked:
    """What one service knows. ``unknown`` are packages that it could not look up, with the reason."""

    known: frozenset[str]
    unknown: dict[str, str]
    advisories: tuple[Advisory, ...]


@dataclass(frozen=True, slots=True)
class Ignored:
    id: str
    package: str
    reason: str
    until: date


def read(report: dict[str, Any]) -> Looked:
    """Out of pip-audit's JSON."""
    known, unknown, advisories = set(), {}, []
    for each in report["dependencies"]:
        if "skip_reason" in each:
            unknown[each["name"]] = str(each["skip_reason"]).partition(":")[0]
            continue
        known.add(each["name"])
        for found in each["vulns"]:
            names = (found["id"], *found.get("aliases", ()))
            fixed = tuple(found.get("fix_versions", ()))
            advisories.append(Advisory(each["name"], each["version"], names, fixed))
    return Looked(frozenset(known), unknown, tuple(advisories))


def together(looked: Iterable[Looked]) -> Looked:
    """What several services know: one that could look a package up is enough."""
    all_of = tuple(looked)
    known = frozenset[str]().union(*(each.known for each in all_of))
    unknown: dict[str, str] = {}
    for name, why in (item for each in all_of for item in each.unknown.items() if item[0] not in known):
        unknown[name] = f"{unknown[name]}; {why}" if name in unknown else why
    advisories: dict[tuple[str, str], Advisory] = {}
    for found in (advisory for each in all_of for advisory in each.advisories):
        said_before = any((found.package, name) in advisories for name in found.names)
        if not said_before:
            advisories |= {(found.package, name): found for name in found.names}
    return Looked(known, unknown, tuple(dict.fromkeys(advisories.values())))


def ignored(text: str) -> tuple[Ignored, ...]:
    return tuple(Ignored(**each) for each in tomllib.loads(text).get("ignored", []))


def judged(looked: Looked, let_pass: Sequence[Ignored], today: date) -> tuple[list[str], list[str]]:
    """What fails, and what is only to be known; each a sentence that says what to do."""
    fails, notes = [], []
    by_name = {(each.package, each.id): each for each in let_pass}
    used = set()
    for each in looked.advisories:
        entry = next((by_name[each.package, name] for name in each.names if (each.package, name) in by_name), None)
        told = f"{each.package} {each.version} has {' = '.join(each.names)}"
        if entry is None:
            fails.append(f"{told}: {_mend(each)}")
        else:
            used.add(entry)
            if entry.until < today:
                fails.append(f"{told}, ignored until {entry.until}: look again whether '{entry.reason}' still holds")
    for entry in let_pass:
        if entry not in used and entry.package in looked.known:
            fails.append(f"{entry.id} of {entry.package} is ignored and not there: take it out of {IGNORED.name}")
    if looked.unknown:
        why = next(iter(looked.unknown.values()))
        total = len(looked.unknown) + len(looked.known)
        notes.append(
            f"skipped: {len(looked.unknown)} of {total} packages could not be looked up ({why}); "
            "run 'make audit' where pypi.org or api.osv.dev answers"
        )
    return fails, notes


def _mend(advisory: Advisory) -> str:
    if advisory.fixed_in:
        versions = " or ".join(advisory.fixed_in)
        return f"raise it to {versions} in pyproject.toml, then 'make lock'; or say why not in {IGNORED.name}"
    return f"nothing mends it yet; do without it, or say why it does not concern us in {IGNORED.name}"


def look_up(service: str, files: Sequence[Path]) -> Looked:
    """By pip-audit; what it could not do at all is every package's reason."""
    asked = [part for file in files for part in ("-r", str(file))]
    options = ["--require-hashes", "--disable-pip", "--progress-spinner", "off", "--timeout", "10", "-f", "json"]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pip_audit", "-s", service, *options, *asked],
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
        )
        return read(json.loads(done.stdout))
    except subprocess.TimeoutExpired:
        why = f"{service} did not answer within {_PATIENCE} s"
    except ValueError:
        last = (done.stderr.strip().splitlines() or [f"pip-audit exited with {done.returncode}"])[-1]
        why = f"{service} cannot be reached" if "ConnectionError" in last else f"{service}: {last[:200]}"
    return Looked(frozenset(), dict.fromkeys(packages(files), why), ())


def packages(files: Iterable[Path]) -> list[str]:
    """Names of what the files pin."""
    lines = (line for file in files for line in file.read_text().splitlines())
    return sorted({line.partition("==")[0] for line in lines if "==" in line})


def dependencies(require: bool) -> int:
    files = sorted((ROOT / "requirements").glob("*.txt"))
    looked = [look_up(SERVICES[0], files)]
    if looked[0].unknown:
        looked.append(look_up(SERVICES[1], files))
    result = together(looked)
    fails, notes = judged(result, ignored(IGNORED.read_text()), datetime.now(UTC).date())
    for line in fails:
        print(f"audit: {line}", file=sys.stderr)
    for line in notes:
        print(line, file=sys.stderr)
    if not notes:
        print(f"audit: {len(result.known)} packages looked up")
    return 1 if fails or (require and notes) else 0


def workflows() -> int:
    """The schema of GitHub's workflows, and the known ways in which one gives itself away."""
    files = sorted((ROOT / ".github/workflows").glob("*.yml"))
    tools = Path(sys.executable).parent
    commands = (
        ["check-jsonschema", "--quiet", "--builtin-schema", "vendor.github-workflows"],
        ["zizmor", "--quiet", "--offline", "--no-progress"],
    )
    return max(subprocess.run([tools / name, *rest, *files]).returncode for name, *rest in commands)


if __name__ == "__main__":
    sys.exit(max(workflows(), dependencies("--require" in sys.argv[1:])))
