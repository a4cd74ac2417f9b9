"""What a person is told when the API server refuses."""

from __future__ import annotations

import pytest

from rollout_lws.cli.access.refusals import refusal

PODS = 'pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the namespace "prod"'


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        (PODS, "; ask an administrator for that permission"),
        (
            'forbidden: User "system:anonymous" cannot get path "/apis"',
            "; the request had no login: check the kubeconfig's user",
        ),
        ('admission webhook "policy" denied the request: images need a digest', ""),
        ('pods "a" is forbidden: exceeded quota: gpus', ""),
    ],
    ids=["a missing permission", "nobody", "webhook", "quota"],
)
def test_what_can_be_done_about_a_refusal(said: str, advice: str) -> None:
    error = refusal(403, {"reason": "Forbidden", "message": said})
    assert (error.code, error.reason, error.message) == (403, "Forbidden", said + advice)


def test_an_answer_without_words_tells_its_number() -> None:
    assert refusal(502, {}).message == "the API server answered 502"
