"""Objects that scripts change, as far as files tell: they are found where they stand, and so are scripts."""

from __future__ import annotations

import pytest

from tests.cli.lint.manifests import LWS, ROLLOUT, SERVICE, edited, found, joined, places, report

BY_SCRIPT = edited(
    ROLLOUT,
    "          gateway:\n            httpRouteName: chat\n",
    "          customNetworkRefs:\n            - {apiVersion: mesh.example.com/v1, kind: MeshRoute, name: chat}\n",
)
MESH_ROUTE = """\
apiVersion: mesh.example.com/v1
kind: MeshRoute
metadata:
  name: chat
spec:
  destinations:
    - service: chat-api
"""
SCRIPTS = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: scripts
  namespace: tools
data:
  lua.traffic.routing.MeshRoute.mesh.example.com: return obj.data
"""
WHOLE = (BY_SCRIPT, LWS, SERVICE, MESH_ROUTE, SCRIPTS)
#: Of a class whose shares only a script can write.
INGRESS = """\
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: chat
spec:
  ingressClassName: odd
"""
OTHER = MESH_ROUTE.replace("name: chat\n", "name: other\n")


@pytest.mark.parametrize(
    "texts",
    [
        WHOLE,
        WHOLE[:-1],
        (*WHOLE[:-1], SCRIPTS.replace("MeshRoute", "Other"), SCRIPTS.replace("name: scripts", "name: more")),
        (*WHOLE, OTHER, OTHER),
        (
            edited(BY_SCRIPT, "mesh.example.com/v1", "networking.k8s.io/v1", "MeshRoute", "Ingress"),
            LWS,
            SERVICE,
            INGRESS,
        ),
    ],
    ids=["all", "without scripts", "two ConfigMaps", "objects that no Rollout names", "a kind that is known"],
)
def test_nothing_is_told_of_what_is_right_or_cannot_be_known(texts: tuple[str, ...]) -> None:
    assert found(joined(*texts)) == []


def test_the_object_counts_among_those_that_concern_releases() -> None:
    assert report(joined(*WHOLE)).objects == 4


@pytest.mark.parametrize(
    ("code", "text", "told"),
    [
        (
            "LWS401",
            joined(edited(BY_SCRIPT, "name: chat}", "»name: chat}"), LWS, SERVICE),
            "MeshRoute chat is not among the files (namespace default)",
        ),
        (
            "LWS212",
            joined(*WHOLE[:3], f"»{MESH_ROUTE}", SCRIPTS.replace("MeshRoute", "HTTPProxy")),
            "no script says how MeshRoute chat shares requests: add one as"
            " lua.traffic.routing.MeshRoute.mesh.example.com to ConfigMap tools/scripts",
        ),
        (
            "LWS212",
            joined(*WHOLE[:3], f"»{edited(MESH_ROUTE, 'chat-api', 'chat-api-canary')}"),
            "MeshRoute chat names Service chat-api-canary, which a release adds by itself",
        ),
        (
            "LWS210",
            joined(BY_SCRIPT, LWS, edited(SERVICE, "  selector:\n    app: chat\n", "  »selector:\n    app: other\n")),
            "selects no leader",
        ),
        (
            "LWS201",
            joined(
                edited(
                    BY_SCRIPT,
                    "            - {api",
                    "            - {apiVersion: v1, kind: Service, name: chat-api}\n            - {api",
                ).replace("- {apiVersion: v1,", "- »{apiVersion: v1,"),
                *WHOLE[1:],
            ),
            "Service chat-api is named twice, and would be changed twice",
        ),
        (
            "LWS103",
            joined(edited(BY_SCRIPT, "- {apiVersion: mesh.example.com/v1, kind", "- »{kind"), *WHOLE[1:]),
            "apiVersion is missing in spec.strategy.canary.trafficRoutings[0].customNetworkRefs[0]: add it",
        ),
        (
            "LWS004",
            joined(*WHOLE, edited(MESH_ROUTE, "  name: chat", "  »name: chat")),
            "MeshRoute chat is in 0.yaml:",
        ),
    ],
)
def test_each_is_found_where_it_stands(code: str, text: str, told: str) -> None:
    here = [(each.line, each.column) for each in found(text) if each.code == code and told in each.message]
    assert here == places(text), found(text)


def test_a_kind_of_the_same_name_in_another_group_is_another_one() -> None:
    """The Service of the group that a script changes does not stand for the one that selects pods."""
    by_service = edited(
        BY_SCRIPT, "mesh.example.com/v1, kind: MeshRoute, name: chat", "a.io/v1, kind: Service, name: chat-api"
    )
    other = "apiVersion: a.io/v1\nkind: Service\nmetadata: {name: chat-api}\nspec: {backends: []}\n"
    assert found(joined(by_service, LWS, SERVICE, other)) == []
    assert [each.code for each in found(joined(by_service, LWS, other))] == ["LWS401"]


@pytest.mark.parametrize("refs", ["7", "[7, {name: {}}]", "null", "[{apiVersion: v1, kind: 3, name: []}]"])
def test_malformed_references_are_told_by_the_schema_alone(refs: str) -> None:
    text = edited(
        BY_SCRIPT, "\n            - {apiVersion: mesh.example.com/v1, kind: MeshRoute, name: chat}", f" {refs}"
    )
    codes = {each.code for each in found(joined(text, LWS, SERVICE))}
    assert codes and codes <= {"LWS102", "LWS103", "LWS201", "LWS404"}
