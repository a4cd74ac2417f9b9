"""Stories of the sandbox that are not told on a real control plane, and why: what is not run there should be known."""

from __future__ import annotations

from collections.abc import Mapping

#: What, and why not there; of the matrix itself nothing is left out with ALL=1.
LEFT_OUT: Mapping[str, str] = {
    "controller killed at every write": "thousands of releases in real time; each story kills its controller once",
    "promises judged before each write": "a write that is on its way cannot be stopped; what it did is checked instead",
    "random walks": "what one finds is found again only where chance and time can be chosen",
    "refusals, lost answers and slow answers of the API server": "a real one cannot be told to; outages are told",
    "requests counted by the meter": "nobody serves requests there; shares are looked at in routes and endpoints",
    "Ingress and InferencePools": "what shares their requests is no part of Kubernetes' own controllers",
    "autoscalers": "there are no metrics to scale by",
    "machines that fail": "the machines are the sandbox's on both sides",
    "days of waiting": "real time; that nothing is written while waiting is told of seconds",
}


def lines() -> list[str]:
    return [f"not told on a control plane: {what}: {why}" for what, why in LEFT_OUT.items()]
