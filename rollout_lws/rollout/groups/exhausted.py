"""Groups of the new version that have used up their restarts, made again on request."""

from __future__ import annotations

from collections.abc import Iterator

from rollout_lws.objects.writes import Patch
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.state import Promoting
from rollout_lws.workload.groups import ask_again, groups
from rollout_lws.workload.revisions import target_revision


def again(d: Draft) -> Iterator[Patch]:
    """Has each of them made again, those of companions as well."""
    promoted = d.o.stable if isinstance(d.state, Promoting) and not d.beside_users else None
    known = (d.home, promoted, *(each.canary for each in d.o.companions))
    for facts in {id(each): each for each in known if each is not None}.values():
        for group in groups(facts):
            if group.exhausted and group.revision == target_revision(facts):
                yield ask_again(group, "the release is tried again")
