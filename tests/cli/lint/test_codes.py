"""Every code: a manifest that has it, at its very position, with words that say what to do."""

from __future__ import annotations

import re

import pytest

from rollout_lws.cli.lint.findings import CODE_OF, CODES
from rollout_lws.objects.resources import LWS_NAME
from rollout_lws.rollout.reasons import Reason
from tests.cli.lint.manifests import (
    GREEN,
    GREEN_PREFILL,
    GREEN_SERVICE,
    HPA,
    HPA_OF_ROLLOUT,
    INGRESS,
    LWS,
    PAIR,
    PAIR_ROUTE,
    PAIR_ROUTE_TO_POOLS,
    PLAIN_ROLLOUT,
    POOLED_SET_PAIR,
    POOLS,
    PREFILL,
    ROLLOUT,
    ROUTE,
    SCALED_OBJECT,
    SCALED_PAIR,
    SERVICE,
    SHIFTED_PAIR,
    WHOLE_PAIR,
    WHOLE_SCALED_PAIR,
    WHOLE_SET_PAIR,
    asking,
    edited,
    found,
    joined,
    places,
    unnumbered,
)
from tests.cli.lint.stateful import STATEFUL_SET, STS_ROLLOUT, STS_SERVICE
from tests.cli.lint.swapping import BUDGET, BY_NAME, MONITOR, PLAIN_SWAP, POLICY, SWAP, WHOLE_SWAP
from tests.docs.pages import ROOT

_BY_INGRESS = edited(ROLLOUT, "          gateway:\n            httpRouteName: chat", "          ingress: {name: chat}")
_BY_POOLS = edited(
    ROLLOUT,
    "            httpRouteName: chat\n",
    "            httpRouteName: chat\n            inferencePool: {stable: chat, canary: chat-next}\n",
)
_ROUTE_TO_POOL = edited(
    ROUTE,
    "- name: chat-api\n",
    "- group: inference.networking.k8s.io\n          kind: InferencePool\n          name: chat\n",
)
_SHIFT_BY_POOLS = edited(
    asking(SHIFTED_PAIR),
    "          counterpartService: green-api\n",
    "",
    "            httpRouteName: chat\n",
    "            httpRouteName: chat\n            inferencePool: {stable: chat, canary: chat-next}\n",
)
_PORTS = "  targetPorts:\n    - number: 8000\n"
#: Workers that are not probed, behind a Service that does not tell them from leaders.
_OTHER_LEADERS = edited(
    LWS,
    "    workerTemplate:",
    "    workerTemplate:\n      metadata: {labels: {app: chat}}\n      spec: {containers: [{name: worker, image: a}]}\n"
    "    leaderTemplate:",
)
_WIDE = edited(SERVICE, '    leaderworkerset.sigs.k8s.io/worker-index: "0"\n', "")
_CLAIMS = (
    "    size: 2\n    {}volumeClaimTemplates: [{{metadata: {{name: cache}}, spec: {{accessModes: [ReadWriteOnce]}}}}]"
)
_LONG = "a-name-that-is-quite-long-for-a-model-server-of-51c"


def rollout(*changes: str) -> str:
    return joined(edited(ROLLOUT, *changes), LWS, SERVICE, ROUTE)


def plain(*changes: str) -> str:
    return joined(edited(PLAIN_ROLLOUT, *changes), LWS)


def lws(*changes: str) -> str:
    return joined(ROLLOUT, edited(LWS, *changes), SERVICE, ROUTE)


def service(*changes: str) -> str:
    return joined(ROLLOUT, LWS, edited(SERVICE, *changes), ROUTE)


def route(*changes: str) -> str:
    return joined(ROLLOUT, LWS, SERVICE, edited(ROUTE, *changes))


def ingress(*changes: str) -> str:
    return joined(_BY_INGRESS, LWS, SERVICE, edited(INGRESS, *changes))


def by_ingress(*changes: str) -> str:
    return joined(edited(_BY_INGRESS, *changes), LWS, SERVICE, INGRESS)


def pools(*changes: str) -> str:
    return joined(_BY_POOLS, LWS, SERVICE, _ROUTE_TO_POOL, edited(POOLS, *changes))


def gated(gate: str, *changes: str) -> str:
    """With a gate in the first step."""
    return rollout("          pause: {}\n", f"          gates:\n          {gate}\n          pause: {{}}\n", *changes)


def pair(*changes: str, lacking: tuple[str, ...] = ()) -> str:
    """A whole pair, changed, without these manifests."""
    return edited(joined(*(each for each in WHOLE_PAIR if each not in lacking)), *changes)


def scaled(
    *changes: str, rollout: str = SCALED_PAIR, one: str = "", other: str = "", more: tuple[str, ...] = ()
) -> str:
    """A pair whose Rollout scales both sides, changed, with these sides, and with more manifests."""
    _, *sides = WHOLE_SCALED_PAIR[:3]
    given = (one or sides[0], other or sides[1])
    return edited(joined(rollout, *given, *WHOLE_SCALED_PAIR[3:], *more), *changes)


def shifted(*changes: str, number: int | None = 4) -> str:
    """A pair that shifts, changed, with a number of groups."""
    asked = SHIFTED_PAIR if number is None else asking(SHIFTED_PAIR, number=number)
    return scaled(*changes, rollout=asked)


def both(text: str, other: str) -> str:
    return joined(text, other)


#: Name → code, file, and a part of what is told. The file has a mark in front of where it is told.
CASES: dict[str, tuple[str, str, str]] = {
    # Reading
    "a tab": ("LWS001", plain("      steps:", "»\t    steps:"), "cannot start any token"),
    "a list that ends": ("LWS001", plain("pause: {}", "pause: {duration: 1»\n---"), "not YAML: "),
    "a key of two": ("LWS001", plain("          pause: {}", "          »[a, b]: 1"), "a key must be plain text"),
    "a template": (
        "LWS002",
        plain("  name: chat\nspec", "  name: »{{ .Release.Name }}\nspec"),
        "lint what it renders, as in `helm template . | rollout-lws lint -f -`",
    ),
    "a block of a template": (
        "LWS002",
        plain("kind: Rollout", "»{{- if .Values.on }}\nkind: Rollout"),
        "of Helm or Jinja",
    ),
    "a key twice": (
        "LWS001",
        plain("          pause: {}", "          pause: {}\n          »pause: {}"),
        "not a manifest: pause stands here again: remove one, or put --- above another object",
    ),
    "an object without a separator": (
        "LWS001",
        plain() + edited(SERVICE, "apiVersion", "»apiVersion"),
        "apiVersion stands here again: remove one, or put --- above another object",
    ),
    "an object twice": (
        "LWS004",
        both(plain(), edited(LWS, "  name: chat\nspec", "  »name: chat\nspec")),
        "LeaderWorkerSet chat is in 0.yaml:20 already",
    ),
    # What an API server refuses
    "an unknown field": (
        "LWS101",
        plain("      steps:", "      »stepz: 1\n      steps:"),
        "no field stepz here: did you mean steps?",
    ),
    "a field of an older version": (
        "LWS101",
        plain("          pause: {}", "          »weight: 20"),
        "no field weight here: did you mean traffic?",
    ),
    "an unknown field of the root": ("LWS101", plain("spec:\n  w", "»specs: {}\nspec:\n  w"), "did you mean spec?"),
    "a field of nobody": ("LWS101", plain("pause: {}", "pause: {»qqqqqq: 1}"), "no field qqqqqq here: remove it"),
    "text for a number": (
        "LWS102",
        plain("duration: 600", "»duration: 10m"),
        'spec.strategy.canary.steps[1].pause.duration: must be of type integer: "string"; write whole seconds, 600',
    ),
    "text for seconds": (
        "LWS102",
        plain("  strategy:\n", "  strategy:\n    »minReadySeconds: soon\n"),
        'spec.strategy.minReadySeconds: must be of type integer: "string"; write whole seconds',
    ),
    "a share that is none": (
        "LWS102",
        rollout("          traffic: 20%", "          »traffic: 20"),
        'steps[0].traffic: must be of type string: "integer"',
    ),
    "a share that is too much": (
        "LWS102",
        rollout("          traffic: 20%", "          »traffic: 120%"),
        "steps[0].traffic: should match '^(auto|(100|[1-9]?[0-9])%)$'",
    ),
    "a port in quotes": (
        "LWS102",
        service("    - port: 80", "    - »port: '80'"),
        "spec.ports[0].port: must be of type integer",
    ),
    "a quantity of nobody": (
        "LWS102",
        lws("            args: [serve]", "            resources: {limits: {»memory: 64GB}}"),
        "resources.limits.memory: should match ",
    ),
    "a list for a map": (
        "LWS102",
        plain("          pause: {}", "          »pause: []"),
        'spec.strategy.canary.steps[0].pause: must be of type object: "array"',
    ),
    "too many": (
        "LWS102",
        plain("    canary:", "    »minReadySeconds: 99999\n    canary:"),
        "spec.strategy.minReadySeconds: should be less than or equal to 86400",
    ),
    "an unknown word": (
        "LWS102",
        plain("    canary:", "    »onFailure: abort\n    canary:"),
        'spec.strategy.onFailure: unsupported value: "abort": supported values: "Pause", "Abort"',
    ),
    "an unknown word, nothing near": (
        "LWS102",
        plain("      steps:", "      »capacity: Sideways\n      steps:"),
        'supported values: "ExtraWorkload", "InPlace", "Surge"',
    ),
    "a label that is a number": (
        "LWS102",
        lws("          app: chat", "          »app: 7"),
        'metadata.labels.app: must be of type string: "integer"',
    ),
    "a path without a type": (
        "LWS103",
        ingress("          - path: /\n            pathType: Prefix\n", "          - »path: /\n"),
        "pathType is missing in spec.rules[0].http.paths[0]",
    ),
    "no steps": (
        "LWS103",
        joined(PLAIN_ROLLOUT.partition("      steps")[0].replace("canary:", "»canary: {}"), LWS),
        "steps is missing in spec.strategy.canary: add it",
    ),
    "no spec": (
        "LWS103",
        joined(PLAIN_ROLLOUT.partition("spec:")[0].replace("apiV", "»apiV"), LWS),
        "Rollout chat has no spec",
    ),
    "a field of nobody in an LWS": (
        "LWS104",
        lws("  replicas: 4", "  replicas: 4\n  »rolloutStrategie: {}"),
        "LeaderWorkerSet is not known to have a field rolloutStrategie here: did you mean rolloutStrategy?",
    ),
    "an LWS that its webhook refuses": (
        "LWS105",
        lws("    size: 2", "    size: 2\n    subGroupPolicy:\n      »subGroupSize: 3"),
        "LeaderWorkerSet refuses spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize: 3: must be from 1 to size",
    ),
    "no name": (
        "LWS106",
        plain("metadata:\n  name: chat\nspec", "»metadata: {}\nspec"),
        "Rollout without a name: give it a metadata.name",
    ),
    "a generated name": (
        "LWS106",
        plain("metadata:\n  name: chat\nspec", "»metadata:\n  generateName: chat-\nspec"),
        "replace generateName by it",
    ),
    "an old version": (
        "LWS107",
        plain("apiVersion: rollouts.kruise.io/v1beta1", "»apiVersion: rollouts.kruise.io/v1alpha1"),
        "Rollout of version v1alpha1 is not served: write apiVersion rollouts.kruise.io/v1beta1",
    ),
    "an LWS of another API": (
        "LWS107",
        joined(
            PLAIN_ROLLOUT,
            edited(LWS, "apiVersion: leaderworkerset.x-k8s.io/v1", "»apiVersion: workload.kubernetes.io/v1alpha1"),
        ),
        "a LeaderWorkerSet of workload.kubernetes.io/v1alpha1 is none that can be released",
    ),
    # What the controller refuses
    "steps that decrease": (
        "LWS201",
        plain("        - replicas: 50%", "        - »replicas: 0%"),
        "0% is too small: give at least 1 group",
    ),
    "two styles": (
        "LWS201",
        plain("  strategy:", "  »strategy:\n    blueGreen: {steps: [{replicas: 1}]}"),
        "exactly one of canary and blueGreen must be set",
    ),
    "a pause both ways": (
        "LWS201",
        plain("duration: 600", "duration: 600\n            »approvalTimeoutSeconds: 60"),
        "a pause with a duration asks for none: remove one of the two",
    ),
    "a share that nobody routes": (
        "LWS201",
        plain("pause: {}", "»traffic: 20%"),
        "nothing is named that could route it",
    ),
    "another kind": (
        "LWS202",
        plain(
            "  workloadRef:\n    apiVersion: leaderworkerset.x-k8s.io/v1",
            "  »workloadRef:\n    apiVersion: workload.kubernetes.io/v1alpha1",
        ),
        "only leaderworkerset.x-k8s.io/v1 LeaderWorkerSet or apps/v1 StatefulSet can be released",
    ),
    "a long name of a Rollout": (
        "LWS203",
        plain("  name: chat\nspec", f"  »name: {'a' * 64}\nspec"),
        "the Rollout's name has 64 characters",
    ),
    "two Rollouts": (
        "LWS204",
        joined(
            plain(),
            edited(PLAIN_ROLLOUT, "  name: chat\nspec", "  name: chat-two\nspec", "    name: chat", "    »name: chat"),
        ),
        "LeaderWorkerSet chat is released by Rollout chat (0.yaml:1) as well: delete one of the two",
    ),
    "an LWS of another controller": (
        "LWS205",
        lws(
            "  name: chat\nspec",
            "  name: chat\n  »ownerReferences: [{apiVersion: v1, kind: KServe, name: d, controller: true}]\nspec",
        ),
        "is controlled by KServe d",
    ),
    "an LWS of a DisaggregatedSet": (
        "LWS205",
        lws(
            "  name: chat\nspec",
            "  name: chat\n  »ownerReferences: [{apiVersion: disaggregatedset.x-k8s.io/v1, kind: DisaggregatedSet,"
            " name: d, controller: true}]\nspec",
        ),
        "is made by DisaggregatedSet d, which rolls all its roles together and would undo a release: run two"
        " DisaggregatedSets",
    ),
    "groups without numbers": (
        "LWS206",
        lws("  replicas: 4", "  replicas: 4\n  »groupIdentity: Hash"),
        "has groupIdentity Hash",
    ),
    "a copy of MultiKueue's": (
        "LWS207",
        lws("  name: chat\nspec", "  name: chat\n  »labels: {kueue.x-k8s.io/multikueue-origin: hub}\nspec"),
        "is a copy that MultiKueue (hub) has made",
    ),
    "one group in place": (
        "LWS208",
        joined(
            edited(PLAIN_ROLLOUT, "      steps:", "      »capacity: InPlace\n      steps:"),
            edited(LWS, "replicas: 4", "replicas: 1"),
        ),
        "scale it to 2, or use capacity Surge",
    ),
    "a taken name": (
        "LWS209",
        joined(plain(), edited(LWS, "  name: chat\nspec", "  »name: chat-canary\nspec")),
        "LeaderWorkerSet chat-canary exists and is not ours",
    ),
    "a Service of nobody": (
        "LWS210",
        service("  selector:\n    app: chat", "  »selector:\n    app: chart"),
        "Service chat-api selects no leader of LeaderWorkerSet chat",
    ),
    "a Service of the LWS's name": (
        "LWS210",
        joined(
            edited(ROLLOUT, "service: chat-api", "service: chat"),
            LWS,
            edited(SERVICE, "  name: chat-api", "  name: chat", "  selector:", "  »selector:"),
            edited(ROUTE, "- name: chat-api", "- name: chat"),
        ),
        "make another Service for requests",
    ),
    "a Service of two LWSs": (
        "LWS210",
        joined(service("  selector:", "  »selector:"), edited(LWS, "  name: chat\nspec", "  name: chat-two\nspec")),
        "selects leaders of LeaderWorkerSet chat-two besides chat",
    ),
    "a taken Service": (
        "LWS210",
        joined(service(), edited(SERVICE, "  name: chat-api", "  »name: chat-api-canary", "app: chat", "app: other")),
        "Service chat-api-canary exists and is not ours",
    ),
    "a Service that is not named": (
        "LWS210",
        joined(service(), edited(SERVICE, "  name: chat-api", "  name: other", "  selector:", "  »selector:")),
        "Service other would select groups of the new version too",
    ),
    "one pool for both": (
        "LWS211",
        pools().replace("canary: chat-next", "»canary: chat"),
        "inferencePool names chat for both versions",
    ),
    "a pool of nobody": (
        "LWS211",
        joined(
            _BY_POOLS,
            LWS,
            SERVICE,
            _ROUTE_TO_POOL,
            POOLS.partition("---\n")[0].replace("  selector", "  »selector").replace("app: chat", "app: chart"),
            POOLS.partition("---\n")[2],
        ),
        "InferencePool chat selects no leader of LeaderWorkerSet chat",
    ),
    "a route to another Service": (
        "LWS212",
        route("  rules:", "  »rules:", "name: chat-api", "name: other"),
        "has no rule with a backendRef to Service/chat-api",
    ),
    "all requests to one group": (
        "LWS212",
        rollout("          traffic: 20%", "          »traffic: 100%"),
        "step 1 sends all requests to 1 of 4 groups",
    ),
    "a share that is too much for one group": (
        "LWS212",
        rollout(
            "      steps:", "      capacity: InPlace\n      steps:", "          traffic: 20%", "          »traffic: 60%"
        ),
        "times what a group has at rest",
    ),
    "an Ingress of another class": (
        "LWS212",
        ingress("  rules:", "  »rules:", "ingressClassName: nginx", "ingressClassName: traefik"),
        "Ingress chat is of class traefik",
    ),
    "a step that nginx cannot do": (
        "LWS212",
        by_ingress("          traffic: 20%", "          »matches: [{path: {value: /v1}}]"),
        "ingress-nginx cannot express this step",
    ),
    "a surge under Kueue": (
        "LWS214",
        joined(
            edited(PLAIN_ROLLOUT, "      steps:", "      »capacity: Surge\n      steps:"),
            edited(LWS, "  name: chat\nspec", "  name: chat\n  labels: {kueue.x-k8s.io/queue-name: gpus}\nspec"),
        ),
        "is queued by Kueue (gpus), which ends surge groups",
    ),
    "an autoscaler of KEDA's": (
        "LWS213",
        joined(PLAIN_ROLLOUT, unnumbered(LWS), edited(SCALED_OBJECT, "  scaleTarget", "  »scaleTarget")),
        "is written by ScaledObject chat of KEDA",
    ),
    # What nobody refuses
    "readiness by TCP": (
        "LWS301",
        lws("              httpGet:\n                path: /health\n", "              »tcpSocket:\n"),
        "leaders are ready as soon as their port is open",
    ),
    "no readiness": (
        "LWS302",
        lws("        containers:", "        »containers:", "            readinessProbe:", "            livenessProbe:"),
        "leaders have no readinessProbe",
    ),
    "a load balancer by TCP": (
        "LWS303",
        service(
            "  name: chat-api\n",
            "  name: chat-api\n  annotations:\n"
            "    »service.beta.kubernetes.io/aws-load-balancer-healthcheck-protocol: TCP\n",
        ),
        "have it check by HTTP",
    ),
    "an address": (
        "LWS304",
        lws("args: [serve]", "args: [serve, »'--master-addr=chat-0.chat:29500']"),
        "write $(LWS_LEADER_ADDRESS)",
    ),
    "an address in a variable": (
        "LWS304",
        lws(
            "            args: [serve]",
            "            env:\n              - name: MASTER\n                »value: chat-0",
        ),
        "chat-0 is a leader of this very LeaderWorkerSet",
    ),
    "a partition": (
        "LWS305",
        lws(
            "  replicas: 4\n",
            "  replicas: 4\n  rolloutStrategy:\n    type: RollingUpdate\n"
            "    rollingUpdateConfiguration:\n      »partition: 0\n",
        ),
        "remove partition from the manifest",
    ),
    "workers behind a Service": (
        "LWS306",
        joined(ROLLOUT, _OTHER_LEADERS, edited(_WIDE, "  selector:", "  »selector:"), ROUTE),
        "Service chat-api selects workers of LeaderWorkerSet chat too",
    ),
    "a name of fifty-one": (
        "LWS307",
        lws("  name: chat\nspec", f"  »name: {_LONG}\nspec").replace(
            "    name: chat\n  strategy", f"    name: {_LONG}\n  strategy"
        ),
        "the name has 51 characters",
    ),
    "a deadline before the start": (
        "LWS308",
        joined(
            edited(PLAIN_ROLLOUT, "    canary:", "    »progressDeadlineSeconds: 600\n    canary:"),
            edited(
                LWS,
                "            lifecycle:",
                "            startupProbe: {periodSeconds: 10, failureThreshold: 90}\n            lifecycle:",
            ),
        ),
        "give a group 900 s, and a step would be called failed after 600 s",
    ),
    "a deadline after Kueue's": (
        "LWS323",
        joined(
            edited(PLAIN_ROLLOUT, "    canary:", "    »progressDeadlineSeconds: 1801\n    canary:"),
            edited(LWS, "  name: chat\nspec", "  name: chat\n  labels: {kueue.x-k8s.io/queue-name: gpus}\nspec"),
        ),
        "Kueue ends a group that is not ready after 30 min by default, before the deadline of a step (1801 s)",
    ),
    "a drain until leaders are idle": (
        "LWS324",
        rollout("          gateway:\n", "          drain: {»until: Idle}\n          gateway:\n"),
        "the leaders' template of chat declares no port, so what runs on groups is not known: they get 30 s",
    ),
    "much more": (
        "LWS309",
        plain("        - replicas: 50%", "        - »replicas: 75%"),
        "step 2 takes 3 groups beside",
    ),
    "a pause of the promotion": (
        "LWS310",
        plain("        - replicas: 100%", "        - replicas: 100%\n          »pause: {}"),
        "step 3, the last one of 100%, is the promotion itself and waits for no approval",
    ),
    "nobody looks": (
        "LWS311",
        plain("      steps:", "      »steps:", "pause: {}", "pause: {duration: 0}", "duration: 600", "duration: 0"),
        "no step waits for an approval or a time",
    ),
    "an end at once": (
        "LWS312",
        lws("        containers:", "        »containers:", "preStop", "postStart"),
        "leaders have no preStop",
    ),
    "groups that are not ready": (
        "LWS313",
        service("  ports:", "  »publishNotReadyAddresses: true\n  ports:"),
        "sends requests to groups that are not ready",
    ),
    "two who scale": (
        "LWS314",
        joined(PLAIN_ROLLOUT, edited(LWS, "  replicas: 4", "  »replicas: 4"), HPA),
        "HorizontalPodAutoscaler chat (0.yaml:46) sets the number of groups",
    ),
    "an autoscaler behind the Rollout's back": (
        "LWS314",
        joined(
            asking(PLAIN_ROLLOUT),
            edited(LWS, "  replicas: 4\n", ""),
            edited(HPA, "  scaleTargetRef", "  »scaleTargetRef"),
        ),
        "let it scale the Rollout chat",
    ),
    "an autoscaler of a Rollout that says its number": (
        "LWS314",
        joined(asking(PLAIN_ROLLOUT, "»"), edited(LWS, "  replicas: 4\n", ""), HPA_OF_ROLLOUT),
        "leave replicas out of the manifest, and set the first number by kubectl scale",
    ),
    "a Rollout and an LWS of different numbers": (
        "LWS314",
        joined(asking(PLAIN_ROLLOUT), edited(LWS, "  replicas: 4", "  »replicas: 3")),
        "asks for 4 groups",
    ),
    "a preStop that is too long": (
        "LWS317",
        lws("              preStop:", "              »preStop:", '"10"', '"30"'),
        "preStop sleeps for 30 s, and the pod is killed 30 s after it was deleted",
    ),
    "a native preStop": (
        "LWS317",
        lws(
            '              preStop:\n                exec:\n                  command: [sleep, "10"]',
            "              »preStop: {sleep: {seconds: 90}}",
            "        containers:",
            "        terminationGracePeriodSeconds: 60\n        containers:",
        ),
        "preStop sleeps for 90 s, and the pod is killed 60 s after it was deleted",
    ),
    "nobody behind the canary": (
        "LWS318",
        joined(
            plain(),
            edited(SERVICE, "  selector:\n    app: chat", "  »selector:\n    leaderworkerset.sigs.k8s.io/name: chat"),
        ),
        "so those of chat-canary get no requests and steps try nothing",
    ),
    "volumes of a canary": (
        "LWS320",
        lws("    size: 2", _CLAIMS.format("»")),
        "such as cache-chat-canary-0, and groups of a later version would get what is in them: set"
        " persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete}",
    ),
    "volumes of a surge": (
        "LWS320",
        joined(
            edited(PLAIN_ROLLOUT, "      steps:", "      capacity: Surge\n      steps:"),
            edited(LWS, "    size: 2", _CLAIMS.format("»")),
        ),
        "such as cache-chat-4, and groups of a later version would get what is in them: set"
        " persistentVolumeClaimRetentionPolicy: {whenScaled: Delete, whenDeleted: Delete}",
    ),
    "leaders first": (
        "LWS321",
        lws("  replicas: 4", "  replicas: 4\n  »startupPolicy: LeaderReady"),
        "use LeaderCreated, and a readinessProbe of the leader that passes only when the whole group answers",
    ),
    # What cannot be told
    "no LWS": (
        "LWS401",
        edited(PLAIN_ROLLOUT, "    name: chat", "    »name: chat"),
        "LeaderWorkerSet chat is not among the files (namespace default): what depends on it was not checked",
    ),
    "no Service": (
        "LWS401",
        joined(edited(ROLLOUT, "        - service", "        - »service"), LWS, ROUTE),
        "Service chat-api is not among the files",
    ),
    "no route": (
        "LWS401",
        joined(edited(ROLLOUT, "            httpRoute", "            »httpRoute"), LWS, SERVICE),
        "HTTPRoute chat is not among the files",
    ),
    "no second pool": (
        "LWS401",
        pools().partition("---\napiVersion: inference")[0].replace("canary: chat-next", "»canary: chat-next")
        + "---\n"
        + POOLS.partition("---\n")[0],
        "InferencePool chat-next is not among the files",
    ),
    "a Rollout of Kruise's": (
        "LWS402",
        plain(
            "  workloadRef:\n    apiVersion: leaderworkerset.x-k8s.io/v1\n    kind: LeaderWorkerSet",
            "  »workloadRef:\n    apiVersion: apps/v1\n    kind: Deployment",
        ),
        "Rollout chat is one of OpenKruise Rollouts: it names a Deployment",
    ),
    "a Rollout with errors": (
        "LWS404",
        edited(
            joined(PLAIN_ROLLOUT, LWS),
            "apiVersion: rollouts",
            "»apiVersion: rollouts",
            "duration: 600",
            "duration: 10m",
        ),
        "Rollout chat has errors: what the controller would refuse was not checked; correct them first",
    ),
    "gates that leave the bad version its requests": (
        "LWS325",
        gated("- »name: first-token\n            metric: {signal: TimeToFirstToken, max: 2s}"),
        "when gate first-token fails the version, the release waits for a user, and the version keeps its requests",
    ),
    "figures without requests": (
        "LWS326",
        gated("- name: errors\n            »metric: {signal: ErrorRate, max: 2%}", "          traffic: 20%\n", ""),
        "no request reaches the new version in step 1, so gate errors comes to nothing",
    ),
    "figures with a share of nothing": (
        "LWS326",
        gated("- name: queue\n            »metric: {signal: QueueLength, max: '8'}", "traffic: 20%", "traffic: 0%"),
        "give the step traffic, or move the gate to one that has some",
    ),
    "more requests than can come": (
        "LWS327",
        gated(
            "- name: errors\n            window: 30\n            deadlineSeconds: 30\n"
            "            metric: {signal: ErrorRate, max: 2%, »minSamples: 10000}",
            "traffic: 20%",
            "traffic: 1%",
        ),
        "gate errors judges nothing below 10,000 requests, and with 1% of them in 30 s that is 33,333 a second for 4"
        " groups: lower minSamples",
    ),
    "more requests than stable can have": (
        "LWS327",
        gated(
            "- name: errors\n            metric: {signal: ErrorRate, maxToStable: 120%, »minSamples: 100000}",
            "      steps:",
            "      capacity: Surge\n      steps:",
            "        - replicas: 1\n          traffic: 20%",
            "        - replicas: 75%\n          traffic: 75%",
            "        - replicas: 50%\n          traffic: 40%",
            "        - replicas: 75%\n          traffic: 75%",
        ),
        "and with 25% of them in 600 s that is 667 a second for 4 groups",
    ),
    "a warm-up of groups that get requests already": (
        "LWS405",
        edited(
            rollout(),
            "          pause:\n            duration: 600",
            "          gates:\n          - name: warm-up\n            »when: BeforeTraffic\n"
            "            http: {each: Group}\n          pause:\n            duration: 600",
        ),
        "the new version has requests in step 1 already, and groups that step 2 adds get some of them once they are"
        " ready:"
        " gate warm-up holds back only that their share is raised",
    ),
    "a limit between two edges": (
        "LWS406",
        gated(
            "- name: first-token\n            metric: {signal: TimeToFirstToken, »max: 2s}",
            "    canary:",
            "    analysis: {engine: vLLM}\n    canary:",
        ),
        "gate first-token of step 1: 2s is between two edges of vLLM's histogram, 1 s and 2.5 s",
    ),
    "a query that is not PromQL": (
        "LWS201",
        gated("- name: ours\n            query: {max: 1%, »promQL: 'sum(rate(my_errors[5m])'}"),
        "not PromQL: ",
    ),
    "a query that is no number": (
        "LWS201",
        gated("- name: ours\n            query: {max: 1%, promQL: up, »samples: 'my_requests[5m]'}"),
        "it is no number: wrap a range in a function",
    ),
    "a query of another type": (
        "LWS201",
        gated("- name: ours\n            query: {max: 1%, »promQL: rate(my_requests)}"),
        "not PromQL: ",
    ),
    "a pair whose second LWS is in another file": (
        "LWS401",
        pair("    name: chat-green\n", "    »name: chat-green\n", lacking=(GREEN,)),
        "LeaderWorkerSet chat-green is not among the files",
    ),
    "a pair whose second Service is in another file": (
        "LWS401",
        pair("counterpartService", "»counterpartService", lacking=(GREEN_SERVICE,)),
        "Service green-api is not among the files",
    ),
    "a pair whose route is in another file": (
        "LWS401",
        pair("httpRouteName", "»httpRouteName", lacking=(PAIR_ROUTE,)),
        "HTTPRoute chat is not among the files",
    ),
    "a pair with a Service of the other side": (
        "LWS210",
        pair("  selector:\n    app: chat-green\n", "  »selector:\n    app: chat\n"),
        "Service green-api selects no leader of LeaderWorkerSet chat-green",
    ),
    "a pair whose rule names one side": (
        "LWS212",
        pair(
            "  rules:\n",
            "  »rules:\n",
            "        - name: green-api\n          port: 80\n          weight: 0\n",
            "",
        ),
        "names Service/chat-api but not Service/green-api: add a backendRef to it with weight 0",
    ),
    "a pair that is scaled": (
        "LWS201",
        pair("  touch: RouteOnly\n", "  touch: RouteOnly\n  »replicas: 4\n"),
        "with touch: RouteOnly no workload is scaled",
    ),
    "a pair of which another Rollout has a side": (
        "LWS204",
        joined(
            *WHOLE_PAIR,
            edited(
                PLAIN_ROLLOUT,
                "  name: chat\nspec",
                "  name: other\nspec",
                "    name: chat\n",
                "    »name: chat-green\n",
            ),
        ),
        "LeaderWorkerSet chat-green is released by Rollout chat (0.yaml:1) as well",
    ),
    "a pair with a side of another Rollout": (
        "LWS204",
        joined(
            edited(
                PLAIN_ROLLOUT, "  name: chat\nspec", "  name: other\nspec", "    name: chat\n", "    name: chat-green\n"
            ),
            pair("    name: chat-green\n", "    »name: chat-green\n"),
        ),
        "LeaderWorkerSet chat-green is released by Rollout other (0.yaml:1) as well",
    ),
    "a pair whose sides both have requests": (
        "LWS215",
        pair("          weight: 100", "          »weight: 100", "weight: 0", "weight: 10"),
        "requests go to both chat and chat-green, or to neither: set the weight of one of them to 0 in the route",
    ),
    "the route of a pair": (
        "LWS407",
        pair("          weight: 100", "          »weight: 100"),
        "Rollout chat (0.yaml:1) writes the weights of HTTPRoute chat, and keeps them between releases too",
    ),
    "a pair's second side without a probe": (
        "LWS301",
        joined(
            PAIR,
            LWS,
            edited(GREEN, "httpGet:\n                path: /health\n", "»tcpSocket:\n"),
            SERVICE,
            GREEN_SERVICE,
            PAIR_ROUTE,
        ),
        "leaders are ready as soon as their port is open",
    ),
    "an autoscaler of each side of a pair": (
        "LWS213",
        scaled(
            more=(
                edited(HPA, "  scaleTarget", "  »scaleTarget"),
                edited(SCALED_OBJECT, "  scaleTarget", "  »scaleTarget", "    name: chat\n", "    name: chat-green\n"),
            )
        ),
        "whose groups are the Rollout's to count: have it scale the Rollout, with scaleTargetRef"
        " rollouts.kruise.io/v1beta1, Rollout, chat",
    ),
    "replicas of the sides of a pair": (
        "LWS216",
        scaled(
            one=edited(LWS, "  replicas: 4", "  »replicas: 4"), other=edited(GREEN, "  replicas: 4", "  »replicas: 0")
        ),
        "is refused once a manifest that states replicas is applied: each apply would start groups without requests,"
        " or take those that serve. Remove replicas here; the Rollout has the number. If this manifest was applied"
        " already, remove them by kubectl apply edit-last-applied leaderworkerset chat",
    ),
    "replicas that kubectl has applied": (
        "LWS216",
        scaled(
            one=edited(
                LWS,
                "  name: chat\nspec",
                "  name: chat\n  resourceVersion: '7'\n  annotations:\n"
                '    kubectl.kubernetes.io/last-applied-configuration: \'{"spec": {"replicas": 4}}\'\nspec',
                "  replicas: 4",
                "  »replicas: 4",
            ),
        ),
        "remove spec.replicas with kubectl apply edit-last-applied leaderworkerset chat, and then from the manifest",
    ),
    "a pool of one side that selects a companion of the other one": (
        "LWS211",
        joined(
            *POOLED_SET_PAIR[:4],
            edited(POOLED_SET_PAIR[4], "side: green", "side: blue"),
            SERVICE,
            edited(POOLED_SET_PAIR[6], "  selector", "  »selector"),
            *POOLED_SET_PAIR[7:],
        ),
        "InferencePool chat selects leaders of LeaderWorkerSet prefill-green besides chat, so that its weight is not",
    ),
    "a companion that the pool of its side does not select": (
        "LWS331",
        joined(
            edited(POOLED_SET_PAIR[0], "counterpart: prefill-green", "»counterpart: prefill-green"),
            *POOLED_SET_PAIR[1:4],
            GREEN_PREFILL,
            *POOLED_SET_PAIR[5:],
        ),
        "InferencePool chat-next does not select groups of LeaderWorkerSet prefill-green",
    ),
    "an autoscaler of a workload that a swap scales": (
        "LWS213",
        joined(SWAP, unnumbered(LWS), SERVICE, ROUTE, HPA.replace("  scaleTargetRef", "  »scaleTargetRef")),
        "have it scale the Rollout, with scaleTargetRef rollouts.kruise.io/v1beta1, Rollout, chat",
    ),
    "replicas of a workload that a swap scales": (
        "LWS216",
        joined(SWAP, LWS.replace("  replicas: 4", "  »replicas: 4"), SERVICE, ROUTE),
        "scales LeaderWorkerSet chat, and is refused once a manifest that states replicas is applied",
    ),
    "a Service by name that a swap names": (
        "LWS217",
        joined(SWAP, unnumbered(LWS), BY_NAME.replace("  selector", "  »selector"), ROUTE),
        "Service chat-api selects groups of chat only",
    ),
    "a Service by name that a swap does not name": (
        "LWS217",
        joined(*WHOLE_SWAP, edited(BY_NAME, "name: chat-api", "name: batch").replace("  selector", "  »selector")),
        "Service batch selects groups of chat only, by labels that the LeaderWorkerSet gives them, and chat and"
        " chat-canary serve"
        " in turn: select them by labels of the template",
    ),
    "a Service by name of a swap without a route": (
        "LWS217",
        joined(PLAIN_SWAP, unnumbered(LWS), BY_NAME.replace("  selector", "  »selector")),
        "Service chat-api selects groups of chat only",
    ),
    "a budget by name of a swap": (
        "LWS217",
        joined(*WHOLE_SWAP, BUDGET.replace("  selector", "  »selector")),
        "PodDisruptionBudget chat selects groups of chat only, by labels that the LeaderWorkerSet gives them",
    ),
    "a policy by name of a swap": (
        "LWS333",
        joined(*WHOLE_SWAP, POLICY.replace("        - podSelector", "        - »podSelector")),
        "NetworkPolicy chat is about groups of chat alone, by leaderworkerset.sigs.k8s.io/name, so that it does not"
        " hold for groups of chat-canary",
    ),
    "figures by name of a swap": (
        "LWS333",
        joined(*WHOLE_SWAP, MONITOR.replace("  selector", "  »selector")),
        "PodMonitor chat scrapes groups of chat alone",
    ),
    "pods that start one after the other": (
        "LWS334",
        joined(
            STS_ROLLOUT,
            edited(STATEFUL_SET, "podManagementPolicy: Parallel", "»podManagementPolicy: OrderedReady"),
            STS_SERVICE,
            ROUTE,
        ),
        "the groups of a release load one after the other, each when the one before is ready",
    ),
    "a pod's name in a template": (
        "LWS335",
        joined(STS_ROLLOUT, edited(STATEFUL_SET, "[serve]", "[»chat-0.chat-pods]"), STS_SERVICE, ROUTE),
        "have each tell its own name, by a variable from metadata.name (fieldRef)",
    ),
    "volumes of a workload that a swap scales to 0": (
        "LWS320",
        joined(
            SWAP,
            edited(unnumbered(LWS), "    size: 2", _CLAIMS.format("»")),
            SERVICE,
            ROUTE,
        ),
        "PersistentVolumeClaims of chat stay when it is scaled to 0 at the end of a release, such as cache-chat-0",
    ),
    "a Service that selects decode and prefill": (
        "LWS332",
        joined(*WHOLE_SET_PAIR[:6], edited(PREFILL, "app: prefill", "app: chat"), GREEN_PREFILL).replace(
            "  selector:\n    app: chat\n", "  »selector:\n    app: chat\n"
        ),
        "Service chat-api selects groups of chat and of prefill, so that clients reach both alike",
    ),
    "a pair whose sides both begin with a group": (
        "LWS328",
        scaled("  counterpartRef", "  »counterpartRef", "  activeSide: chat\n", ""),
        "chat and chat-green both have groups as the files have them (1 where replicas is not stated), and the Rollout"
        " waits to be told which of them serves: name that one in spec.activeSide",
    ),
    "a side of another controller": (
        "LWS205",
        scaled(
            other=edited(
                WHOLE_SCALED_PAIR[2],
                "  name: chat-green\n",
                "  name: chat-green\n  »ownerReferences: [{apiVersion: v1, kind: KServe, name: d, controller: true}]\n",
            )
        ),
        "LeaderWorkerSet chat-green is controlled by KServe d, which would undo a release: set touch: RouteOnly",
    ),
    "a side of a shift with groups without numbers": (
        "LWS206",
        scaled(rollout=asking(SHIFTED_PAIR), other=edited(GREEN, "  replicas: 4", "  »groupIdentity: Hash")),
        "LeaderWorkerSet chat-green has groupIdentity Hash",
    ),
    "an address of the other side": (
        "LWS304",
        scaled(other=edited(WHOLE_SCALED_PAIR[2], "args: [serve]", "args: [serve, »'--master=chat-0.chat:29500']")),
        "chat-0.chat is a leader of chat, the other side of the pair, also to this one's groups",
    ),
    "an address of the own side": (
        "LWS304",
        scaled(other=edited(WHOLE_SCALED_PAIR[2], "args: [serve]", "args: [serve, »chat-green-0.chat-green]")),
        "chat-green-0.chat-green is a leader of this very LeaderWorkerSet, also to its other groups",
    ),
    "a partition of a side": (
        "LWS305",
        scaled(
            other=edited(
                GREEN,
                "  replicas: 4",
                "  rolloutStrategy:\n    rollingUpdateConfiguration:\n      »partition: 2",
            )
        ),
        "remove partition from the manifest",
    ),
    "an end at once of a side": (
        "LWS312",
        scaled(one=edited(WHOLE_SCALED_PAIR[1], "        containers:", "        »containers:", "preStop", "postStart")),
        "leaders have no preStop",
    ),
    "an autoscaler of a pair that says its number": (
        "LWS314",
        scaled(
            rollout=asking(SCALED_PAIR, "»"),
            more=(
                edited(
                    SCALED_OBJECT,
                    "    apiVersion: leaderworkerset.x-k8s.io/v1\n    kind: LeaderWorkerSet\n",
                    "    apiVersion: rollouts.kruise.io/v1beta1\n    kind: Rollout\n",
                ),
            ),
        ),
        "ScaledObject chat (0.yaml:121) sets the number of groups, and every apply of this manifest sets it back: leave"
        " replicas out of the manifest",
    ),
    "an autoscaler of a side that its owner scales": (
        "LWS314",
        joined(PAIR, edited(LWS, "  replicas", "  »replicas"), *WHOLE_PAIR[2:], HPA),
        "HorizontalPodAutoscaler chat (0.yaml:122) sets the number of groups",
    ),
    "volumes of a side": (
        "LWS320",
        scaled(other=edited(WHOLE_SCALED_PAIR[2], "    size: 2", _CLAIMS.format("»"))),
        "PersistentVolumeClaims of chat-green stay when it is scaled to 0 at the end of a release, such as"
        " cache-chat-green-0, and groups of the next version there get what is in them: set"
        " persistentVolumeClaimRetentionPolicy: {whenScaled: Delete, whenDeleted: Delete}",
    ),
    "much more than the Rollout's number": (
        "LWS309",
        joined(edited(asking(PLAIN_ROLLOUT), "        - replicas: 50%", "        - »replicas: 75%"), unnumbered(LWS)),
        "step 2 takes 3 groups beside the workload's 4",
    ),
    "more requests than can come to a pair": (
        "LWS327",
        scaled(
            rollout=edited(
                asking(SCALED_PAIR),
                "          pause: {}\n",
                "          gates:\n          - name: errors\n            deadlineSeconds: 30\n            window: 30\n"
                "            metric: {signal: ErrorRate, max: 2%, »minSamples: 10000}\n          pause: {}\n",
            )
        ),
        "that is 1,667 a second for 4 groups",
    ),
    "all requests to one group of a pair": (
        "LWS212",
        scaled(rollout=edited(asking(SCALED_PAIR), "          traffic: 20%", "          »traffic: 100%")),
        "step 1 sends all requests to 1 of 4 groups",
    ),
    "a shift of one group without room for another one": (
        "LWS208",
        shifted("      shift: {}", "      »shift: {maxExtraGroups: 0, maxUnavailableGroups: 1}", number=1),
        "set maxExtraGroups to 1, or scale the Rollout to 2",
    ),
    "a shift with neither an extra group nor one that may lack": (
        "LWS201",
        shifted("      shift: {}", "      »shift: {maxExtraGroups: 0}"),
        "with neither an extra group nor one that may lack, no group can come or go: give maxExtraGroups 1",
    ),
    "a shift of workloads that their owner scales": (
        "LWS201",
        pair("      capacity: Pair\n", "      capacity: Pair\n      »shift: {}\n"),
        "with touch: RouteOnly no workload is scaled: remove it, or remove touch",
    ),
    "a shift of one workload": (
        "LWS201",
        rollout("    canary:\n", "    canary:\n      »shift: {}\n"),
        "it is for capacity Shift, and for a pair: set capacity: Shift, or name the second workload in counterpartRef,"
        " or remove it",
    ),
    "a shift out of a Service that selects by the name alone": (
        "LWS210",
        shifted(
            "  selector:\n    app: chat\n    lead",
            "  »selector:\n    leaderworkerset.sigs.k8s.io/name: chat\n    lead",
        ),
        "Service chat-api selects groups only by labels that the LeaderWorkerSet gives them",
    ),
    "a shift out of a pool that selects by the name alone": (
        "LWS211",
        joined(
            _SHIFT_BY_POOLS,
            *WHOLE_SCALED_PAIR[1:3],
            PAIR_ROUTE_TO_POOLS,
            edited(
                POOLS,
                f"  name: chat-next\nspec:\n{_PORTS}  selector:\n    matchLabels:\n      app: chat\n",
                f"  name: chat-next\nspec:\n{_PORTS}  »selector:\n    matchLabels:\n      {LWS_NAME}: chat-green\n",
            ),
        ),
        "InferencePool chat-next selects groups only by labels that the LeaderWorkerSet gives them",
    ),
    "a share that overloads the first group of a shift": (
        "LWS212",
        shifted("- replicas: 1\n          traffic: auto", "- replicas: 1\n          »traffic: 60%"),
        "step 1 sends 60% of requests to 1 group of the new version, 2.4 times what a group has at rest",
    ),
    "a pause in the last step of a shift": (
        "LWS310",
        shifted(
            "          pause:\n            duration: 600\n",
            "          pause:\n            duration: 600\n"
            "        - replicas: 100%\n          traffic: 100%\n          »pause: {}\n",
        ),
        "step 3, the last one of 100%, is the promotion itself",
    ),
    "a shift that leaves half of the groups": (
        "LWS329",
        shifted("      shift: {}", "      shift: {maxExtraGroups: 0, »maxUnavailableGroups: 1}", number=2),
        "while groups load, 1 of 2 serve, each with 2 times what it has at rest: set maxUnavailableGroups to 0",
    ),
    "a shift of which many groups may lack": (
        "LWS329",
        shifted("      shift: {}", "      shift: {»maxUnavailableGroups: 50%}", number=8),
        "while groups load, 4 of 8 serve, each with 2 times what it has at rest: lower maxUnavailableGroups",
    ),
    "a percentage that comes to a group which may lack": (
        "LWS329",
        shifted("      shift: {}", "      »shift: {maxExtraGroups: 0, maxUnavailableGroups: 1%}", number=2).replace(
            "»shift: {maxExtraGroups: 0, maxU", "shift: {maxExtraGroups: 0, »maxU"
        ),
        "while groups load, 1 of 2 serve",
    ),
    "groups of a shift that drain for hours": (
        "LWS330",
        shifted("          gateway:\n", "          »drainSeconds: 1200\n          gateway:\n"),
        "groups that go drain 1 at a time, and each time takes 1203 s: 4,812 s for the 4 groups of a release",
    ),
    "an LWS with errors": (
        "LWS404",
        joined(edited(PLAIN_ROLLOUT, "    name: chat", "    »name: chat"), edited(LWS, "    size: 2", "    size: two")),
        "LeaderWorkerSet chat has errors (0.yaml:20): what depends on it was not checked",
    ),
}


@pytest.mark.parametrize(("code", "text", "told"), CASES.values(), ids=CASES)
def test_each_is_found_where_it_stands(code: str, text: str, told: str) -> None:
    here = [(each.line, each.column) for each in found(text) if each.code == code and told in each.message]
    assert here == places(text), found(text)


_REST = (LWS, SERVICE, ROUTE)
_FIGURES = "          gates: [{name: errors, metric: {signal: ErrorRate, max: 2%}}]\n"
_WARM_UP = "          gates: [{name: warm-up, when: BeforeTraffic, http: {each: Group}}]\n"
#: Gates that no advice is given about, and what else is changed.
_GOOD_GATES = {
    "gates with a way back": (_FIGURES, "    canary:", "    onFailure: Abort\n    canary:"),
    "gates whose failure is to wait": (_FIGURES, "    canary:", "    onFailure: Pause\n    canary:"),
    "a warm-up before the first request": (_WARM_UP,),
    "figures of requests that match": (
        _FIGURES,
        "    canary:",
        "    onFailure: Abort\n    canary:",
        "          traffic: 20%\n",
        "          matches: [{headers: [{name: x-user, value: canary}]}]\n",
    ),
    "a limit that is an edge": (
        "          gates: [{name: first-token, metric: {signal: TimeToFirstToken, max: 2500ms}}]\n",
        "    canary:",
        "    onFailure: Abort\n    analysis: {engine: vLLM}\n    canary:",
    ),
    "a gauge, which is read": (
        "          gates: [{name: queue, metric: {signal: QueueLength, max: '8', minSamples: 1000000}}]\n",
        "    canary:",
        "    onFailure: Abort\n    canary:",
    ),
    "tokens, which are many a request": (
        "          gates: [{name: no-slower, metric: {signal: InterTokenLatency, max: 100ms, minSamples: 1000000}}]\n",
        "    canary:",
        "    onFailure: Abort\n    canary:",
    ),
}
_IN_PLACE = edited(PLAIN_ROLLOUT, "      steps:", "      capacity: InPlace\n      steps:")


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param((ROLLOUT, LWS, _WIDE, ROUTE), id="all pods are probed for answers"),
        pytest.param(
            (
                edited(PLAIN_ROLLOUT, "    canary:", "    minReadySeconds: 1500\n    canary:"),
                edited(LWS, "readinessProbe", "livenessProbe"),
            ),
            id="a time instead of a probe",
        ),
        pytest.param((PLAIN_ROLLOUT, edited(LWS, "replicas: 4", "replicas: 1")), id="one group beside one"),
        pytest.param((_IN_PLACE, edited(LWS, "    size: 2", _CLAIMS.format(""))), id="volumes of groups in place"),
        pytest.param(
            (
                PLAIN_ROLLOUT,
                edited(
                    LWS,
                    "    size: 2",
                    _CLAIMS.format("") + "\n    persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete}",
                ),
            ),
            id="volumes that go",
        ),
        pytest.param(
            (PLAIN_ROLLOUT, edited(LWS, "  replicas: 4", "  replicas: 4\n  startupPolicy: LeaderReady")),
            id="leaders first without requests",
        ),
        *(
            pytest.param(
                (edited(ROLLOUT, "          pause: {}\n", f"{gates}          pause: {{}}\n", *more), *_REST), id=name
            )
            for name, (gates, *more) in _GOOD_GATES.items()
        ),
        pytest.param(
            (
                edited(
                    edited(ROLLOUT, "          gateway:\n", "          drain: {until: Idle}\n          gateway:\n"),
                    "    canary:",
                    "    analysis: {from: Prometheus}\n    canary:",
                ),
                LWS,
                SERVICE,
                ROUTE,
            ),
            id="a drain that asks Prometheus",
        ),
    ],
)
def test_no_advice_is_given_that_would_do_harm_or_cannot_be_followed(texts: tuple[str, ...]) -> None:
    assert found(joined(*texts)) == []


def test_nothing_is_told_of_a_hold_that_a_pair_does_not_have() -> None:
    partition = "  replicas: 4\n  rolloutStrategy: {rollingUpdateConfiguration: {partition: 2}}"
    sides = (edited(each, "  replicas: 4", partition) for each in (LWS, GREEN))
    texts = joined(PAIR, *sides, SERVICE, GREEN_SERVICE, PAIR_ROUTE)
    assert {each.code for each in found(texts)} == {"LWS407"}


def test_leaders_of_a_pair_may_end_at_once_since_no_release_deletes_any() -> None:
    sides = (edited(each, "              preStop:", "              postStart:") for each in (LWS, GREEN))
    assert {each.code for each in found(joined(PAIR, *sides, SERVICE, GREEN_SERVICE, PAIR_ROUTE))} == {"LWS407"}


_STORED = "  name: chat\n  resourceVersion: '7'\n"


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param(WHOLE_SCALED_PAIR, id="a pair that its Rollout scales"),
        pytest.param((*WHOLE_SCALED_PAIR, HPA_OF_ROLLOUT), id="an autoscaler of the Rollout"),
        pytest.param(
            (asking(SCALED_PAIR), *WHOLE_SCALED_PAIR[1:]), id="a number in the Rollout, which no autoscaler scales"
        ),
        pytest.param(
            (SCALED_PAIR, edited(LWS, "  name: chat\n", _STORED), *WHOLE_SCALED_PAIR[2:]), id="a number of a server's"
        ),
        pytest.param(
            (
                edited(SCALED_PAIR, "  activeSide: chat\n", ""),
                edited(LWS, "  name: chat\n", _STORED),
                edited(
                    GREEN, "  name: chat-green\n", f"  name: chat-green\n{_STORED[13:]}", "replicas: 4", "replicas: 0"
                ),
                *WHOLE_SCALED_PAIR[3:],
            ),
            id="a server's side without groups",
        ),
        pytest.param(
            (
                edited(
                    SCALED_PAIR,
                    "          pause: {}\n",
                    "          gates: [{name: errors, metric: {signal: ErrorRate, max: 2%, minSamples: 1000000}}]\n"
                    "          pause: {}\n",
                    "    canary:",
                    "    onFailure: Abort\n    canary:",
                ),
                *WHOLE_SCALED_PAIR[1:],
            ),
            id="requests of a number of groups that no file has",
        ),
        pytest.param((PAIR, unnumbered(LWS), *WHOLE_PAIR[2:], HPA), id="an autoscaler of a side that its owner scales"),
        pytest.param(
            (*WHOLE_SCALED_PAIR[:2], edited(GREEN, "  replicas: 4", "  groupIdentity: Hash"), *WHOLE_SCALED_PAIR[3:]),
            id="a side with groups without numbers",
        ),
        pytest.param((asking(SHIFTED_PAIR), *WHOLE_SCALED_PAIR[1:]), id="a pair that shifts"),
        pytest.param(
            (
                edited(SHIFTED_PAIR, "shift: {}", "shift: {maxExtraGroups: 0, maxUnavailableGroups: 1}"),
                *WHOLE_SCALED_PAIR[1:],
                HPA_OF_ROLLOUT,
            ),
            id="a shift of a number of groups that no file has",
        ),
        pytest.param(
            (
                edited(
                    asking(SHIFTED_PAIR),
                    "          gateway:\n",
                    "          drainSeconds: 7200\n          drain: {until: Idle, maxSeconds: 7200}\n"
                    "          gateway:\n",
                    "    canary:",
                    "    analysis: {from: Prometheus}\n    canary:",
                ),
                *WHOLE_SCALED_PAIR[1:],
            ),
            id="a long drain that ends when nothing runs",
        ),
    ],
)
def test_of_a_pair_that_is_right_only_the_route_is_told(texts: tuple[str, ...]) -> None:
    assert [each.code for each in found(joined(*texts))] == ["LWS407"]


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param(WHOLE_SWAP, id="its manifests"),
        pytest.param((*WHOLE_SWAP, HPA_OF_ROLLOUT), id="an autoscaler of the Rollout"),
        pytest.param((edited(SWAP, "  strategy:", "  replicas: 4\n  strategy:"), *WHOLE_SWAP[1:]), id="its number"),
        pytest.param((PLAIN_SWAP, unnumbered(LWS), SERVICE), id="without a route"),
        pytest.param(
            (
                *WHOLE_SWAP,
                *(
                    each.replace("leaderworkerset.sigs.k8s.io/name", "app").replace("operator: In, values: [chat]", how)
                    for each in (BUDGET, POLICY, MONITOR)
                    for how in ("operator: Exists",)
                ),
            ),
            id="what selects by labels of the template",
        ),
        pytest.param(
            (*WHOLE_SWAP, POLICY.replace("values: [chat]", "values: [chat, chat-canary]")), id="a policy of both"
        ),
        pytest.param(
            (*WHOLE_SWAP, POLICY.replace("operator: In, values: [chat]", "operator: DoesNotExist")), id="of neither"
        ),
        pytest.param(
            (*WHOLE_SWAP, POLICY.replace("        - pod", "        - namespaceSelector: {}\n          pod")),
            id="a policy of other namespaces",
        ),
    ],
)
def test_of_a_swap_that_is_right_nothing_is_told(texts: tuple[str, ...]) -> None:
    assert [each.code for each in found(joined(*texts))] == []


def test_what_selects_one_of_two_workloads_is_right_where_only_one_serves() -> None:
    texts = (ROLLOUT, LWS, SERVICE, ROUTE, BUDGET, POLICY, MONITOR)
    assert [each.code for each in found(joined(*texts))] == []


def test_a_pair_without_a_route_has_no_canary_that_a_service_could_miss() -> None:
    routing = PAIR[PAIR.index("      trafficRoutings:") : PAIR.index("      steps:")]
    lacking = edited(PAIR, routing, "", "          traffic: 20%\n", "", "          traffic: 40%\n", "")
    service = edited(SERVICE, "    app: chat\n", "    leaderworkerset.sigs.k8s.io/name: chat\n")
    assert {each.code for each in found(joined(lacking, LWS, GREEN, service))} == {"LWS201"}


def test_the_command_that_comes_first_names_the_namespace() -> None:
    apart = (edited(each, "metadata:\n  name", "metadata:\n  namespace: ai\n  name") for each in WHOLE_SCALED_PAIR[3:])
    sides = (each.replace("metadata:\n  name", "metadata:\n  namespace: ai\n  name") for each in (SCALED_PAIR, LWS))
    told = [each.message for each in found(joined(*sides, *apart)) if each.code == "LWS216"]
    assert (
        len(told) == 1 and "edit-last-applied leaderworkerset chat -n ai first, else the next apply sets 1" in told[0]
    )


@pytest.mark.parametrize(
    "name", [name for name, (code, _, _) in CASES.items() if code in ("LWS301", "LWS302", "LWS305", "LWS314")]
)
def test_what_only_a_release_makes_a_trap_is_told_of_released_leader_worker_sets_alone(name: str) -> None:
    code, text, _ = CASES[name]
    alone = "---\n".join(each for each in text.split("---\n") if "kind: Rollout\n" not in each)
    assert len(alone) < len(text)
    assert [each.code for each in found(alone)] == [], code


def test_no_code_is_without_a_case() -> None:
    assert {code for code, _, _ in CASES.values()} == set(CODES)


#: What hangs on the version that runs, or on the cluster.
_OF_A_CLUSTER = {Reason.CLAIMS_CHANGED, Reason.UNSAFE_PENDING, Reason.LWS_TOO_OLD}


def test_every_reason_to_refuse_has_a_code() -> None:
    sources = (ROOT / "rollout_lws" / "rollout").rglob("*.py")
    reasons = {Reason[name] for each in sources for name in re.findall(r"Refusal\(\s*Reason\.(\w+)", each.read_text())}
    targets = (ROOT / "rollout_lws" / "targets").glob("*.py")
    reasons |= {Reason(word) for each in targets for word in re.findall(r'Obstacle\(\s*"(\w+)"', each.read_text())}
    assert reasons - _OF_A_CLUSTER == set(CODE_OF)
