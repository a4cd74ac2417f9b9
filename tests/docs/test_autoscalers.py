"""What the page on autoscalers tells Argo CD to ignore is all that a release changes in an autoscaler."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from rollout_lws.objects.resources import HORIZONTAL_POD_AUTOSCALERS
from rollout_lws.rollout.autoscaling.hpa_bounds import held
from tests.docs.pages import blocks
from tests.rollout.test_hpa_bounds import autoscaler
from tests.traffic.build import KEYS, A


@pytest.mark.parametrize("pinned", [False, True])
def test_argo_cd_is_told_to_ignore_all_that_a_hold_changes(pinned: bool) -> None:
    (block,) = blocks(Path("docs/autoscalers.md"), "yaml")
    (rule,) = yaml.safe_load(block)["spec"]["ignoreDifferences"]
    assert (rule["group"], rule["kind"]) == (HORIZONTAL_POD_AUTOSCALERS.group, HORIZONTAL_POD_AUTOSCALERS.kind)
    before = autoscaler(1, 3)
    after = held(before, A, KEYS, 5, pinned=pinned)
    changed = {f"/spec/{member}" for member, value in after["spec"].items() if before["spec"].get(member) != value}
    assert changed == set(rule["jsonPointers"])
