"""What a person is told when the API server refuses."""

from __future__ import annotations

import pytest

from rollout_lws.cli.access.refusals import refusal

STATUS = (
    'rollouts.rollouts.kruise.io "llama" is forbidden: User "jane" cannot patch resource "rollouts/status" in API group'
    ' "rollouts.kruise.io" in the namespace "prod"'
)
EDIT = (
    'leaderworkersets.leaderworkerset.x-k8s.io "llama" is forbidden: User "jane" cannot patch resource'
    ' "leaderworkersets" in API group "leaderworkerset.x-k8s.io" in the namespace "prod"'
)
LIST = (
    'rollouts.rollouts.kruise.io is forbidden: User "jane" cannot list resource "rollouts" in API group'
    ' "rollouts.kruise.io" at the cluster scope'
)
PODS = 'pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the namespace "prod"'
AS = 'users "root" is forbidden: User "jane" cannot impersonate resource "users" in API group "" at the cluster scope'
ASK = "ask an administrator for a role that may"


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        (
            STATUS,
            f"; {ASK} patch rollouts/status.rollouts.kruise.io in namespace prod; get, status and history go on"
            " without it",
        ),
        (
            EDIT,
            f"; {ASK} patch leaderworkersets.leaderworkerset.x-k8s.io in namespace prod; promote, abort, retry, pause"
            " and resume go on without it",
        ),
        (LIST, f"; {ASK} list rollouts.rollouts.kruise.io in the cluster"),
        (
            PODS,
            f"; {ASK} list pods in namespace prod; promote, abort, retry, pause and resume go on without it",
        ),
        (AS, f"; {ASK} impersonate users in the cluster"),
        (
            'forbidden: User "system:anonymous" cannot get path "/apis"',
            "; the request had no login: check the kubeconfig's user",
        ),
        ('admission webhook "policy" denied the request: images need a digest', ""),
        ('pods "a" is forbidden: exceeded quota: gpus', ""),
    ],
    ids=["status", "edit", "list everywhere", "core group", "impersonation", "nobody", "webhook", "quota"],
)
def test_a_missing_permission_is_told_with_whom_to_ask_and_what_goes_on(said: str, advice: str) -> None:
    error = refusal(403, {"reason": "Forbidden", "message": said})
    assert (error.code, error.reason, error.message) == (403, "Forbidden", said + advice)


def test_an_answer_without_words_tells_its_number() -> None:
    assert refusal(502, {}).message == "the API server answered 502"
