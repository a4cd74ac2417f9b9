"""Router for objects of any kind: a script of the administrator says what a share of requests looks like in one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, ClassVar

from rollout_lws.api.resources import Keys
from rollout_lws.objects.resources import ObjectRef, Resource
from rollout_lws.objects.writes import Write
from rollout_lws.traffic import marks
from rollout_lws.traffic.custom import marked_object
from rollout_lws.traffic.custom.changes import Change, Data, changes, mentions
from rollout_lws.traffic.custom.kinds import by_name
from rollout_lws.traffic.custom.marked_object import CustomMark
from rollout_lws.traffic.custom.scripts import FLAG, MOST_INPUT, Evaluation, Failure, Output, key_of
from rollout_lws.traffic.facts import RoutingFacts
from rollout_lws.traffic.names import ManagedRef
from rollout_lws.traffic.registry import CUSTOM
from rollout_lws.traffic.router import Problem, Router, RouteState, Written, does_not_exist, patched
from rollout_lws.traffic.split import Object, Split, listed

#: The new version's backend without requests; when it was named is no matter of scripts.
_LISTED = listed(datetime.min.replace(tzinfo=UTC))
#: What scripts get as the weight of a split without one, as in Kruise.
_NO_WEIGHT = -1


@dataclass(frozen=True)
class CustomRouter:
    """One object that a script changes. Requests go to the new version by what the script returns; all of them go to
    the stable one by the object without its changes, for which no script is needed.
    """

    spec: ClassVar = CUSTOM
    facts: RoutingFacts
    named: ManagedRef

    @property
    def _ref(self) -> ObjectRef:
        return ObjectRef(self.named.kind, self.named.name)

    @property
    def _resource(self) -> Resource | None:
        return self.facts.custom.get(self.named.custom_kind)

    @property
    def resource(self) -> Resource:
        return self._resource or by_name(*self.named.custom_kind)

    @property
    def _live(self) -> Object | None:
        return self.facts.find(self._resource, self.named.name) if self._resource is not None else None

    @cached_property
    def _mark(self) -> CustomMark | None:
        return marked_object.read(self._live, self.facts.by, self.facts.keys) if self._live is not None else None

    @cached_property
    def _own(self) -> Data:
        """The data of the user's own object, for which the script is run."""
        return marked_object.own(self._live or {}, self.facts.by, self.facts.keys, again=True)

    @cached_property
    def state(self) -> RouteState:
        """Nothing tells when such an object is in use, so the grace period covers that, as for an Ingress. It names the
        new version's backend once its script was run for a share of nothing, whatever that has written.
        """
        live, ref, mark = self._live, self._ref, self._mark
        if live is None:
            known = self.named.custom_kind in self.facts.custom
            return RouteState(ref, (Written(ref, None),), missing=str(ref) if known else "")
        drifted = marked_object.drifted(live, self.facts.by, self.facts.keys)
        return RouteState(
            ref,
            (Written(ref, live, mark is not None and not mark.withdrawn, drifted),),
            mark is not None and bool(mark.weight or mark.matches),
            mark.weight if mark is not None else 0,
            carried=mark is not None and mark.carried,
            unmarked=self._lost_mark,
            unlisted=mark is None or mark.withdrawn,
            withdrawn=mark is not None and mark.withdrawn,
            listed_at=mark.listed_at if mark is not None else None,
            unaccepted=self._without_mark if self._lost_mark else "",
        )

    @property
    def _lost_mark(self) -> bool:
        return self._mark is None and mentions(self._live, self.facts.canary_service_name)

    @property
    def _without_mark(self) -> str:
        return (
            f"{self._ref} names Service {self.facts.canary_service_name}, which a release adds by itself, and has no"
            f" annotation {self.facts.keys.original} that says what was there before: apply your own manifest of it"
        )

    def evaluation(self, split: Split) -> Evaluation | None:
        """What has to be evaluated before this split can be written; None where nothing has to, or nothing can."""
        text = self.facts.scripts.texts.get(key_of(self.named))
        if not split.names_new or self._live is None or text is None:
            return None
        modifier = split.header_modifier
        weight = split.weight if split.weight or not split.matches else _NO_WEIGHT
        said: dict[str, Any] = {
            "canaryWeight": weight,
            "stableWeight": 100 - weight,
            "canaryService": self.facts.canary_service_name,
            "stableService": self.facts.names.service,
        }
        if split.matches:
            said["matches"] = [each.to_json_dict() for each in split.matches]
        if modifier is not None:
            said["requestHeaderModifier"] = modifier.to_json_dict()
        return Evaluation(key_of(self.named), text, marked_object.input_of(self._own, said))

    def is_written(self, split: Split) -> bool:
        """Whether the object has exactly this split, so that nothing has to be evaluated."""
        mark, asked = self._mark, self.evaluation(split)
        return (
            mark is not None
            and asked is not None
            and asked.digest == mark.evaluation
            and not any(each.drifted for each in self.state.objects)
        )

    def evaluations(self, split: Split) -> tuple[Evaluation, ...]:
        """What has to be evaluated on the way to this split: it, and the backend without requests, if that comes first;
        () where the object has the split.
        """
        if self.is_written(split):
            return ()
        ways = (_LISTED, split) if self.state.unlisted and split.names_new else (split,)
        return tuple(found for each in ways if (found := self.evaluation(each)) is not None)

    def changes(self, split: Split) -> tuple[Change, ...] | None:
        """What the script changes in the user's own object for this split; None where that is not known."""
        asked = self.evaluation(split)
        after = self._result(asked) if asked is not None else None
        return changes(self._own, after) if isinstance(after, dict) else None

    def apply(self, split: Split, reason: str, *, checked: bool) -> tuple[Write, ...]:
        live, mark, resource = self._live, self._mark, self._resource
        if live is None or resource is None or self._lost_mark or self.is_written(split):
            return ()
        if mark is None and not (checked and split.names_new):
            return ()
        asked = self.evaluation(split)
        after = self._result(asked) if asked is not None else self._own
        if (split.names_new and asked is None) or not isinstance(after, dict):
            return ()
        known = mark.listed_at if mark is not None and not mark.withdrawn else split.listed_at
        made = CustomMark(
            canary_service=self.facts.canary_service_name,
            weight=split.weight,
            matches=len(split.matches),
            evaluation=asked.digest if asked is not None else "",
            listed_at=known if split.only_lists else None,
            carried=split.reaches_new or (mark is not None and mark.carried),
        )
        return patched(
            resource,
            live,
            marked_object.written(live, self.facts.by, self.facts.keys, self._own, after, made),
            reason,
        )

    @classmethod
    def restore(cls, live: Object, by: str, keys: Keys) -> Object:
        """The user's own object."""
        return marked_object.restored(live, by, keys)

    def check(self, split: Split | None = None, *, begun: bool = False) -> Problem | None:  # noqa: ARG002 - ours is annotated
        return self._unusable() if split is None else self._unsaid(split)

    def _unusable(self) -> Problem | None:
        live, ref = self._live, self._ref
        scripts = self.facts.scripts
        if scripts.source == "":
            return Problem(f"this controller runs no scripts for {ref}: start it with {FLAG}", ref, "")
        if scripts.source and scripts.waits is None and key_of(self.named) not in scripts.texts:
            return Problem(
                f"no script says how {ref} shares requests: add one as {key_of(self.named)} to ConfigMap"
                f" {scripts.source}",
                ref,
                "",
            )
        if self._resource is None and self.named.custom_kind in self.facts.custom:
            return Problem(
                f"this cluster does not serve {self.named.api_version} {self.named.kind}: install its"
                " CustomResourceDefinition, or correct apiVersion and kind in trafficRoutings",
                ref,
                "",
            )
        if live is None:
            return Problem(does_not_exist(self.facts, self.resource, ref), ref, "")
        if marks.others(live, self.facts.by, self.facts.keys):
            return Problem(marked_object.changed_by_script(ref), ref, "")
        if self._lost_mark:
            return Problem(self._without_mark, ref, "")
        if len(marked_object.input_of(self._own, {})) > MOST_INPUT:
            return Problem(f"{ref} has more than {MOST_INPUT >> 10} KiB, too much for a script", ref, "")
        return None

    def _unsaid(self, split: Split) -> Problem | None:
        if not split.names_new or self.is_written(split):
            return None
        if self._live is None and self._resource is not None:
            # Whatever the split: the state says that it is missing, and a release does not name another one.
            return None
        if self._live is None or self.evaluation(split) is None or self._lost_mark:
            return self._unusable()
        results = map(self._result, self.evaluations(split))
        wrong = next((each for each in results if isinstance(each, str)), None)
        return Problem(wrong, self._ref, "") if wrong is not None else None

    def _result(self, asked: Evaluation) -> dict[str, Any] | str | None:
        """The data that the script returns, why there is none, or None while it is not known."""
        scripts = self.facts.scripts
        where = f"script {asked.key} of ConfigMap {scripts.source}, run for {self._ref}"
        match scripts.outcomes.get(asked):
            case None:
                return None
            case Failure(message):
                return f"{where}: {message}"
            case Output(body):
                found = marked_object.returned(self._own, body)
                return found if isinstance(found, dict) else f"{where}: {found}"


def evaluations(every: Iterable[Router], split: Split) -> tuple[Evaluation, ...]:
    """What has to be evaluated before these routers can write the split."""
    return tuple(found for each in every if isinstance(each, CustomRouter) for found in each.evaluations(split))
