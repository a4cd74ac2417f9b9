"""StatefulSets among the files: those that a Rollout names are looked at as LeaderWorkerSets are, others not at all."""

from __future__ import annotations

import pytest

from tests.cli.lint.manifests import HPA, LWS, ROLLOUT, ROUTE, SERVICE, edited, found, joined, report, unnumbered
from tests.cli.lint.stateful import (
    DATABASE,
    HEADLESS,
    PLAIN_STS_ROLLOUT,
    STATEFUL_SET,
    STS_PAIR,
    STS_ROLLOUT,
    STS_SERVICE,
    WHOLE_STS,
)
from tests.cli.lint.swapping import BUDGET, MONITOR, POLICY

_STYLE = "    canary:\n      trafficRoutings"


def sts(*changes: str) -> str:
    return joined(STS_ROLLOUT, edited(STATEFUL_SET, *changes), STS_SERVICE, HEADLESS, ROUTE)


def rollout(*changes: str) -> str:
    return joined(edited(STS_ROLLOUT, *changes), *WHOLE_STS[1:])


def codes(*texts: str) -> list[str]:
    return [each.code for each in found(*texts)]


def test_of_one_that_is_right_nothing_is_told() -> None:
    told = report(*WHOLE_STS)
    assert (told.findings, told.objects) == ((), 5)


@pytest.mark.parametrize(
    "beside",
    [
        DATABASE,
        joined(DATABASE, DATABASE),
        edited(DATABASE, "  name: db\nspec", "  generateName: db-\nspec"),
        edited(DATABASE, "apps/v1", "apps.kruise.io/v1beta1"),
        edited(DATABASE, "  name: db\nspec", "  name: chat\n  namespace: other\nspec"),
        edited(DATABASE, "spec:\n  replicas", "\tspec:\n  replicas"),
        edited(DATABASE, "postgres\n          args", "{{ .Values.image }}: a: b\n          args"),
    ],
    ids=["broken", "twice", "without a name", "of another API group", "of another namespace", "a tab", "a template"],
)
@pytest.mark.parametrize("released", [WHOLE_STS, (ROLLOUT, LWS, SERVICE, ROUTE), ()], ids=["one", "an LWS", "none"])
def test_one_that_no_rollout_names_is_not_looked_at(beside: str, released: tuple[str, ...]) -> None:
    told = report(*released, beside)
    assert (told.findings, told.objects) == ((), len(released))


def test_one_with_the_name_of_a_released_leader_worker_set_is_not_looked_at() -> None:
    assert codes(ROLLOUT, LWS, SERVICE, ROUTE, edited(DATABASE, "  name: db\nspec", "  name: chat\nspec")) == []


@pytest.mark.parametrize(
    ("broken", "code"),
    [
        (edited(STATEFUL_SET, "spec:\n  replicas", "\tspec:\n  replicas"), "LWS001"),
        (edited(STATEFUL_SET, "registry.example.org/server:v1", "{{ .Values.image }}: a: b"), "LWS002"),
    ],
)
def test_a_text_that_cannot_be_read_is_told_where_it_may_be_a_named_one(broken: str, code: str) -> None:
    assert codes(STS_ROLLOUT, broken, STS_SERVICE, ROUTE) == ["LWS401", code]


@pytest.mark.parametrize(
    ("changes", "code", "path", "said"),
    [
        (("  replicas: 4\n", "  replicas: many\n"), "LWS102", "spec.replicas", "must be of type integer"),
        (("  selector:\n    matchLabels:\n      app: chat\n", ""), "LWS103", "spec.selector", "selector is missing"),
        (
            ("      labels:\n        app: chat\n", "      labels:\n        app: other\n"),
            "LWS102",
            "spec.template.metadata.labels",
            "`selector` does not match template `labels`",
        ),
        (("    matchLabels:\n      app: chat\n", "    matchLabels: {}\n"), "LWS102", "spec.selector", "empty selector"),
        (("Parallel", "Together"), "LWS102", "spec.podManagementPolicy", '"OrderedReady", "Parallel"'),
        (
            ("  template:\n", "  updateStrategy: {type: OnDelete, rollingUpdate: {partition: 1}}\n  template:\n"),
            "LWS102",
            "spec.updateStrategy.rollingUpdate",
            "only allowed for updateStrategy 'RollingUpdate'",
        ),
        (
            ("      containers:\n", "      restartPolicy: Never\n      containers:\n"),
            "LWS102",
            "spec.template.spec.restartPolicy",
            'supported values: "Always"',
        ),
        (("podManagementPolicy", "podManagmentPolicy"), "LWS104", "spec.podManagmentPolicy", "podManagementPolicy?"),
        (("apps/v1", "apps/v1beta2"), "LWS107", "apiVersion", "write apiVersion apps/v1"),
    ],
)
def test_what_an_api_server_refuses_is_told(changes: tuple[str, ...], code: str, path: str, said: str) -> None:
    told = next(each for each in found(sts(*changes)) if each.code == code)
    assert (told.about, told.path) == ("StatefulSet/chat", path)
    assert said in told.message


def test_one_twice_and_one_that_is_missing() -> None:
    assert codes(*WHOLE_STS, STATEFUL_SET) == ["LWS004"]
    (told,) = found(STS_ROLLOUT, STS_SERVICE, ROUTE)
    assert (told.code, told.path) == ("LWS401", "spec.workloadRef.name")
    assert told.message.startswith("StatefulSet chat is not among the files")


def test_a_rollout_of_kruises_stateful_set_is_kruises() -> None:
    (told,) = found(edited(STS_ROLLOUT, "    apiVersion: apps/v1", "    apiVersion: apps.kruise.io/v1beta1"))
    assert told.code == "LWS402"
    assert told.message.endswith("name a LeaderWorkerSet of leaderworkerset.x-k8s.io/v1 or a StatefulSet of apps/v1")


def test_a_rollout_of_any_api_group_is_ours_if_it_names_one() -> None:
    texts = [each.replace("rollouts.kruise.io/v1beta1", "rollouts.example.org/v1beta1") for each in WHOLE_STS]
    assert report(*texts).objects == 5
    told = found(texts[0].replace("/v1beta1", "/v1alpha1"))
    assert [each.code for each in told] == []


def test_surge_is_refused_in_the_controllers_words() -> None:
    (told,) = found(rollout(_STYLE, _STYLE.replace("      traffic", "      capacity: Surge\n      traffic")))
    assert (told.code, told.path) == ("LWS201", "spec.strategy.canary.capacity")
    assert told.message == "a StatefulSet has no surge groups: use capacity InPlace or ExtraWorkload"


@pytest.mark.parametrize(
    ("changes", "code", "path", "said"),
    [
        (
            ("            httpGet:\n              path: /health\n", "            tcpSocket:\n"),
            "LWS301",
            "spec.template.spec.containers[0].readinessProbe.tcpSocket",
            "pods are ready as soon as their port is open",
        ),
        (
            ("readinessProbe", "livenessProbe"),
            "LWS302",
            "spec.template.spec.containers",
            "pods have no readinessProbe",
        ),
        (
            ("            preStop", "            postStart"),
            "LWS312",
            "spec.template.spec.containers",
            "pods have no preStop",
        ),
        (
            ('command: [sleep, "10"]', 'command: [sleep, "100"]'),
            "LWS317",
            "spec.template.spec.containers[0].lifecycle.preStop",
            "preStop sleeps for 100 s",
        ),
        (
            ("  template:\n", "  updateStrategy: {rollingUpdate: {partition: 0}}\n  template:\n"),
            "LWS305",
            "spec.updateStrategy.rollingUpdate.partition",
            "a Rollout holds the StatefulSet by its partition",
        ),
        (
            ("  name: chat\n", f"  name: chat{'-chat' * 10}\n"),
            "LWS307",
            "metadata.name",
            "the name has 54 characters, and a label of every pod is made of it and a hash",
        ),
        (
            ("  template:\n", "  volumeClaimTemplates: [{metadata: {name: cache}}]\n  template:\n"),
            "LWS320",
            "spec.volumeClaimTemplates",
            "2 PersistentVolumeClaims of groups that go at the end stay, such as cache-chat-canary-0",
        ),
    ],
)
def test_advice_is_that_on_leaders(changes: tuple[str, ...], code: str, path: str, said: str) -> None:
    text = sts(*changes)
    if code == "LWS307":
        text = joined(
            edited(STS_ROLLOUT, "    name: chat\n", f"    name: chat{'-chat' * 10}\n"), *text.split("---\n")[1:]
        )
    told = [each for each in found(text) if each.code == code]
    assert [(each.about.partition("/")[0], each.path) for each in told] == [("StatefulSet", path)]
    assert told[0].message.startswith(said)


def test_a_strategy_that_ends_the_hold_is_told() -> None:
    (told,) = found(sts("  template:\n", "  updateStrategy: {type: OnDelete}\n  template:\n"))
    assert (told.code, told.path) == ("LWS305", "spec.updateStrategy.type")
    assert told.message.endswith("Remove type from the manifest")


@pytest.mark.parametrize(
    ("policy", "path"),
    [("  podManagementPolicy: OrderedReady\n", "spec.podManagementPolicy"), ("", "spec.podManagementPolicy")],
)
def test_pods_that_start_one_after_the_other_are_told(policy: str, path: str) -> None:
    (told,) = found(sts("  podManagementPolicy: Parallel\n", policy))
    assert (told.code, told.path) == ("LWS334", path)
    assert "it cannot be changed later" in told.message


@pytest.mark.parametrize(("unavailable", "told"), [(None, []), (1, []), (2, ["LWS334"]), ("50%", ["LWS334"])])
def test_of_pods_that_are_renewed_one_by_one_anyway_it_is_not(unavailable: int | str | None, told: list[str]) -> None:
    strategy = f"  updateStrategy: {{rollingUpdate: {{maxUnavailable: {unavailable}}}}}\n" if unavailable else ""
    in_place = edited(STS_ROLLOUT, _STYLE, _STYLE.replace("      traffic", "      capacity: InPlace\n      traffic"))
    ordered = edited(STATEFUL_SET, "  podManagementPolicy: Parallel\n", strategy)
    assert codes(in_place, ordered, STS_SERVICE, ROUTE) == told


@pytest.mark.parametrize(
    "args",
    [
        "[serve, --peer, chat-0.chat-pods]",
        "[serve, --peers=chat-0.chat-pods.default.svc:80]",
        "[serve, --first, chat-0]",
        "[serve, 'http://chat-2.chat-pods:8000']",
    ],
)
def test_names_of_pods_do_not_hold_in_a_copy(args: str) -> None:
    (told,) = found(sts("args: [serve]", f"args: {args}"))
    assert (told.code, told.about) == ("LWS335", "StatefulSet/chat")
    assert told.path.startswith("spec.template.spec.containers[0].args[")
    assert "is a pod of chat, also in chat-canary, which a release makes with this template" in told.message
    in_place = edited(STS_ROLLOUT, _STYLE, _STYLE.replace("      traffic", "      capacity: InPlace\n      traffic"))
    assert codes(in_place, edited(STATEFUL_SET, "args: [serve]", f"args: {args}"), STS_SERVICE, ROUTE) == []


@pytest.mark.parametrize(
    "args",
    [
        "[serve, llama-chat-0.5]",
        "[serve, --name, chat-08b]",
        "[serve, chat-pods]",
        "[serve, chat-0.other]",
        "[chat-10]",
    ],
)
def test_what_is_no_name_of_a_pod_is_not_told(args: str) -> None:
    assert codes(sts("args: [serve]", f"args: {args}")) == []


def test_the_pods_of_the_other_side_of_a_pair_are_told() -> None:
    sides = [
        unnumbered(each)
        for each in (
            edited(
                STATEFUL_SET,
                "args: [serve]",
                "args: [chat-0.chat-pods]",
                "        app: chat\n",
                "        app: chat\n        side: blue\n",
            ),
            STATEFUL_SET.replace("name: chat\n", "name: chat-green\n")
            .replace("app: chat\n", "app: chat-green\n")
            .replace("        app: chat-green\n", "        app: chat-green\n        side: green\n")
            .replace("args: [serve]", "args: [chat-0.chat-pods]"),
        )
    ]
    (told,) = [each for each in found(joined(STS_PAIR, *sides)) if each.code == "LWS335"]
    assert told.about == "StatefulSet/chat-green"
    assert (
        "chat-0.chat-pods is a pod of chat, the other side of the pair, also to the pods of chat-green" in told.message
    )


def test_a_service_that_selects_one_pod_has_none_of_the_canary() -> None:
    named = edited(STS_SERVICE, "    app: chat\n", "    statefulset.kubernetes.io/pod-name: chat-0\n")
    (told,) = found(joined(PLAIN_STS_ROLLOUT, STATEFUL_SET, named))
    assert (told.code, told.about) == ("LWS318", "Service/chat-api")
    assert "remove statefulset.kubernetes.io/pod-name from the selector" in told.message


def test_of_workloads_that_serve_in_turn_what_selects_pods_of_one_is_told() -> None:
    swap = edited(
        STS_ROLLOUT, "    canary:\n", "    blueGreen:\n      promotion: Swap\n", "        - replicas: 100%\n", ""
    )
    named = [
        each.replace("leaderworkerset.sigs.k8s.io/name", "statefulset.kubernetes.io/pod-name").replace(
            "chat\n", "chat-0\n"
        )
        for each in (MONITOR, BUDGET)
    ]
    policy = POLICY.replace("leaderworkerset.sigs.k8s.io/name", "statefulset.kubernetes.io/pod-name")
    policy = policy.replace("values: [chat]", "values: [chat-0]")
    told = found(joined(swap, unnumbered(STATEFUL_SET), STS_SERVICE, HEADLESS, ROUTE, *named, policy))
    assert [(each.code, each.about) for each in told] == [
        ("LWS333", "PodMonitor/chat-0"),
        ("LWS217", "PodDisruptionBudget/chat-0"),
        ("LWS333", "NetworkPolicy/chat"),
    ]
    assert "of chat alone, by statefulset.kubernetes.io/pod-name, so" in told[0].message


def test_an_autoscaler_sets_the_number_of_pods() -> None:
    scaler = HPA.replace("leaderworkerset.x-k8s.io/v1", "apps/v1").replace("LeaderWorkerSet", "StatefulSet")
    (told,) = found(joined(*WHOLE_STS, scaler))
    assert (told.code, told.about, told.path) == ("LWS314", "StatefulSet/chat", "spec.replicas")
    # That of a workload of another kind with the same name is not its own.
    assert codes(joined(*WHOLE_STS, HPA, edited(LWS, "app: chat", "app: other"))) == []


def test_two_rollouts_of_one() -> None:
    told = found(joined(*WHOLE_STS, edited(STS_ROLLOUT, "  name: chat\nspec", "  name: talk\nspec")))
    assert {each.code for each in told} == {"LWS204"}
    assert told[0].message.startswith("StatefulSet chat is released by Rollout chat")


def test_rollouts_of_two_kinds_may_name_the_same() -> None:
    named = edited(ROLLOUT, "  name: chat\nspec", "  name: talk\nspec")
    texts = joined(*WHOLE_STS, named, edited(LWS, "app: chat", "app: other"))
    assert "LWS204" not in codes(texts)
