"""Turns texts into findings. Pure: no cluster, no clock, no file access."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rollout_lws.api.resources import rollouts
from rollout_lws.cli.lint.advice import advice
from rollout_lws.cli.lint.documents import Document, read, read_named, without_file
from rollout_lws.cli.lint.file_snapshot import FileSnapshot, Shaped
from rollout_lws.cli.lint.findings import Finding, Severity
from rollout_lws.cli.lint.manifests import NAMED_ONLY, Manifest, Scope, bodies_of, manifests, workloads_of
from rollout_lws.cli.lint.refused import refused
from rollout_lws.cli.lint.schema_check import shaped
from rollout_lws.cli.manifests import Object, Source
from rollout_lws.errors import UsageError
from rollout_lws.traffic.custom.scripts import UNKNOWN_SCRIPTS, Scripts, scripts_in

_ROLLOUT = rollouts().kind


@dataclass(frozen=True, slots=True)
class Report:
    """``findings`` by file, line and column, files in their given order; the number of ``files`` read and of their
    ``objects`` that concern releases.
    """

    findings: tuple[Finding, ...]
    files: int
    objects: int

    def count(self, severity: Severity) -> int:
        return sum(each.severity is severity for each in self.findings)


def lint(sources: Iterable[Source], scope: Scope) -> Report:
    """All findings of these files, checked together."""
    documents: list[Document] = []
    findings: list[Finding] = []
    files: dict[str, int] = {}
    given = [*sources]
    for source in given:
        files[source.name] = len(files)
        some, wrong = read(source)
        documents += some
        findings += wrong
    objects, wrong = manifests(documents, scope)
    findings += wrong
    bodies = (body for document in documents for body in bodies_of(document))
    findings += _judged(objects, scripts_in(bodies))
    named = [one for each in objects if each.resource.kind == _ROLLOUT for one in workloads_of(each.body)]
    for kind in NAMED_ONLY:
        names = {name for resource, name in named if resource == kind}
        findings += [each for source in given for each in read_named(source, kind.kind, names)]
    ordered = sorted(set(findings), key=lambda each: (files[each.file], each))
    return Report(tuple(ordered), len(files), len(objects))


def judge(objects: Iterable[Object], scope: Scope) -> list[Finding]:
    """The findings about these objects, checked together. They come from no file, so the positions mean nothing."""
    return _told(objects, scope, named_only=True)


def _told(objects: Iterable[Object], scope: Scope, *, named_only: bool) -> list[Finding]:
    made, findings = manifests((without_file(each) for each in objects), scope, named_only=named_only)
    return sorted({*findings, *_judged(made)})


def check_valid(given: Iterable[Object], scope: Scope, *, whole: bool = True) -> None:
    """UsageError for the first object, Rollouts aside, that an API server would refuse: no rule can read its fields.
    Required fields are asked for only of ``whole`` objects, and not of changes to those that a cluster has.
    """
    for each in _told((each for each in given if each["kind"] != _ROLLOUT), scope, named_only=False):
        if each.severity is Severity.ERROR and each.code < "LWS200" and (whole or each.code != "LWS103"):
            raise UsageError(f"{each.about} is not valid: {each.message}; rollout-lws lint lists all that is wrong")


def _judged(objects: Iterable[Manifest], scripts: Scripts = UNKNOWN_SCRIPTS) -> Iterator[Finding]:
    whole: list[Shaped] = []
    broken: list[Manifest] = []
    for made in objects:
        body, found = shaped(made, ours=made.resource.kind == _ROLLOUT)
        yield from found
        if body is None:
            broken.append(made)
            if made.resource.kind == _ROLLOUT:
                message = (
                    f"{made.what} has errors: what the controller would refuse was not checked; correct them first"
                )
                yield made.found("LWS404", (), message)
        else:
            whole.append(Shaped(made, body))
    for namespace in sorted({each.manifest.namespace for each in whole}):
        here = [each for each in whole if each.manifest.namespace == namespace]
        groups = {each.manifest.resource.group for each in here if each.manifest.resource.kind == _ROLLOUT}
        # Our kind may exist under several API groups, each with its own controller.
        for group in sorted(groups) or [rollouts().group]:
            files = FileSnapshot(here, group, scripts)
            for each in files.of_kind(_ROLLOUT):
                yield from refused(each, files, broken)
            yield from advice(files)
