"""CEL rules are told only of the members they name, and must not notice."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.sandbox.schemas import cel

VALUE: dict[str, Any] = {
    "name": "llama",
    "min": 1,
    "empty": {},
    "spec": {"replicas": 4, "steps": [{"replicas": 1}, {"replicas": 4}], "labels": {"app": "vllm", "a.b": "c"}},
}
OLD: dict[str, Any] = {**VALUE, "min": 2, "spec": {**VALUE["spec"], "replicas": 3}}


@pytest.mark.parametrize(
    "rule",
    [
        "self.min == 1 && self.min + 1 == oldSelf.min",
        "self != oldSelf && self.spec.steps == oldSelf.spec.steps",
        "size(self) == 4 && self.min == 1",
        "has(self.spec) && !has(self.status) && !has(self.spec.paused) && has(self.spec.steps)",
        "has(self.spec) && size(self.spec) == 3",
        "has( self . spec . labels ) && self . spec . labels . app == 'vllm'",
        "has(self.empty) && self.empty == {}",
        "self.spec.steps.all(step, step.replicas <= self.spec.replicas)",
        "self.spec.steps[1].replicas == 4 && self['min'] == 1",
        "'app' in self.spec.labels && self.spec.labels['a.b'] == 'c'",
        "self.name.startsWith('ll') && self.name.matches('^l+ama$')",
        "[1, 2].exists(oldSelf, oldSelf == self.min)",
    ],
)
def test_a_rule_sees_all_that_it_names(rule: str) -> None:
    assert list(cel.violations([{"rule": rule}], VALUE, OLD, "spec")) == []
    (told,) = cel.violations([{"rule": f"!({rule})"}], VALUE, OLD, "spec")
    assert told == f'spec: Invalid value: "object": failed rule: !({rule})'


def test_the_same_rule_answers_anew_for_other_members() -> None:
    rules = [{"rule": "self.min < 3", "messageExpression": "string(self.min) + ' is too many for ' + self.name"}]
    assert list(cel.violations(rules, VALUE, None, "")) == []
    told = list(cel.violations(rules, {**VALUE, "min": 3, "name": "other"}, None, ""))
    assert told == ['<nil>: Invalid value: "object": 3 is too many for other']
    assert list(cel.violations(rules, VALUE, None, "")) == []


def test_whole_numbers_and_fractions_are_told_apart() -> None:
    rules = [{"rule": "type(self.min) == int"}]
    assert list(cel.violations(rules, {"min": 1}, None, "")) == []
    assert len(list(cel.violations(rules, {"min": 1.0}, None, ""))) == 1


def test_a_rule_that_reads_a_missing_member_refuses_and_says_so() -> None:
    (told,) = cel.violations([{"rule": "self.max > 1"}], VALUE, None, "spec")
    assert "rule self.max > 1 cannot be evaluated: no such member in mapping: 'max'" in told
