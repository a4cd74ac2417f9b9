"""Server-side apply: who owns which field, what happens when two want the same, and what goes when one gives up."""

from __future__ import annotations

from rollout_lws.objects.resources import CONFIG_MAPS, LEADER_WORKER_SETS, PODS, SERVICES
from tests.conformance.asking import Asking, Object
from tests.conformance.differences import OWNED_MAP
from tests.conformance.objects import config_map, lws, pod


def managers(obj: Object) -> list[tuple[str, str, str]]:
    """Manager, operation and subresource of each record of ownership."""
    records = obj["metadata"].get("managedFields", ())
    return sorted((each["manager"], each["operation"], each.get("subresource", "")) for each in records)


def owned(obj: Object, manager: str) -> Object:
    (record,) = (each for each in obj["metadata"]["managedFields"] if each["manager"] == manager)
    assert record["fieldsType"] == "FieldsV1"
    assert record["apiVersion"] == obj["apiVersion"]
    fields: Object = record["fieldsV1"]
    return fields


async def test_an_apply_makes_what_is_not_there(server: Asking) -> None:
    made = await server.apply(CONFIG_MAPS, "settings", {"data": {"a": "1"}}, "one")
    assert made.code == 201
    assert made.body["data"] == {"a": "1"}
    assert managers(made.body) == [("one", "Apply", "")]
    assert owned(made.body, "one") == {"f:data": {"f:a": {}}}


async def test_the_same_apply_again_changes_nothing(server: Asking) -> None:
    body: Object = {"data": {"a": "1"}, "metadata": {"labels": {"app": "chat"}}}
    made = (await server.apply(CONFIG_MAPS, "settings", body, "one")).ok()
    again = await server.apply(CONFIG_MAPS, "settings", body, "one")
    assert (again.code, again.body) == (200, made)


async def test_an_apply_changes_only_what_it_names(server: Asking) -> None:
    (await server.create(CONFIG_MAPS, config_map(data={"a": "1", "b": "2"}))).ok()
    applied = (await server.apply(CONFIG_MAPS, "settings", {"data": {"c": "3"}}, "one")).ok()
    assert applied["data"] == {"a": "1", "b": "2", "c": "3"}
    assert managers(applied) == [("one", "Apply", ""), ("rollout-lws", "Update", "")]


async def test_a_field_of_another_with_another_value_is_a_conflict(server: Asking) -> None:
    (await server.apply(CONFIG_MAPS, "settings", {"data": {"a": "1", "b": "1"}}, "one")).ok()
    refused = await server.apply(CONFIG_MAPS, "settings", {"data": {"a": "2", "b": "1"}}, "two")
    assert refused.refusal == (409, "Conflict", 'Apply failed with 1 conflict: conflict with "one": .data.a')
    assert refused.causes == [("FieldManagerConflict", ".data.a", 'conflict with "one"')]


async def test_all_conflicts_are_told(server: Asking) -> None:
    (await server.apply(CONFIG_MAPS, "settings", {"data": {"a": "1", "b": "1"}}, "one")).ok()
    (await server.apply(CONFIG_MAPS, "settings", {"data": {"c": "1"}}, "three")).ok()
    refused = await server.apply(CONFIG_MAPS, "settings", {"data": {"a": "2", "b": "2", "c": "2"}}, "two")
    text = 'conflicts with "one":\n- .data.a\n- .data.b\nconflicts with "three":\n- .data.c'
    assert refused.refusal == (409, "Conflict", f"Apply failed with 3 conflicts: {text}")
    assert sorted(refused.causes) == [
        ("FieldManagerConflict", ".data.a", 'conflict with "one"'),
        ("FieldManagerConflict", ".data.b", 'conflict with "one"'),
        ("FieldManagerConflict", ".data.c", 'conflict with "three"'),
    ]


async def test_a_conflict_with_an_update_tells_its_version(server: Asking) -> None:
    (await server.create(LEADER_WORKER_SETS, lws(replicas=1))).ok()
    refused = await server.apply(LEADER_WORKER_SETS, "llama", {"spec": {"replicas": 2}}, "one")
    who = f'conflict with "rollout-lws" using {LEADER_WORKER_SETS.api_version}'
    assert refused.refusal == (409, "Conflict", f"Apply failed with 1 conflict: {who}: .spec.replicas")
    assert refused.causes == [("FieldManagerConflict", ".spec.replicas", who)]


async def test_an_update_owns_the_map_that_it_makes(server: Asking) -> None:
    made = (await server.create(CONFIG_MAPS, config_map())).ok()
    assert owned(made, "rollout-lws") == OWNED_MAP.on(server.name)


async def test_the_same_value_is_shared(server: Asking) -> None:
    (await server.apply(CONFIG_MAPS, "settings", {"data": {"a": "1"}}, "one")).ok()
    shared = (await server.apply(CONFIG_MAPS, "settings", {"data": {"a": "1"}}, "two")).ok()
    assert owned(shared, "one") == owned(shared, "two") == {"f:data": {"f:a": {}}}


async def test_force_takes_a_field_over(server: Asking) -> None:
    (await server.apply(CONFIG_MAPS, "settings", {"data": {"a": "1", "b": "1"}}, "one")).ok()
    taken = (await server.apply(CONFIG_MAPS, "settings", {"data": {"a": "2"}}, "two", force="true")).ok()
    assert taken["data"] == {"a": "2", "b": "1"}
    assert owned(taken, "one") == {"f:data": {"f:b": {}}}
    assert owned(taken, "two") == {"f:data": {"f:a": {}}}


async def test_what_a_manager_gives_up_goes_unless_another_has_it(server: Asking) -> None:
    body: Object = {"data": {"a": "1", "b": "1"}, "metadata": {"labels": {"app": "chat"}}}
    (await server.apply(CONFIG_MAPS, "settings", body, "one")).ok()
    (await server.apply(CONFIG_MAPS, "settings", {"data": {"a": "1"}}, "two")).ok()
    left = (await server.apply(CONFIG_MAPS, "settings", {"data": {"c": "1"}}, "one")).ok()
    assert left["data"] == {"a": "1", "c": "1"}
    assert "labels" not in left["metadata"]
    assert owned(left, "one") == {"f:data": {"f:c": {}}}
    assert owned(left, "two") == {"f:data": {"f:a": {}}}


async def test_a_manager_without_fields_is_forgotten(server: Asking) -> None:
    (await server.apply(CONFIG_MAPS, "settings", {"data": {"a": "1"}}, "one")).ok()
    (await server.apply(CONFIG_MAPS, "settings", {"data": {"b": "1"}}, "two")).ok()
    left = (await server.apply(CONFIG_MAPS, "settings", {}, "one")).ok()
    assert left["data"] == {"b": "1"}
    assert managers(left) == [("two", "Apply", "")]


async def test_an_update_takes_fields_from_appliers(server: Asking) -> None:
    (await server.apply(LEADER_WORKER_SETS, "llama", {"spec": lws(replicas=1)["spec"]}, "one")).ok()
    patched = (await server.patch(LEADER_WORKER_SETS, "llama", {"spec": {"replicas": 2}}, fieldManager="two")).ok()
    assert managers(patched) == [("one", "Apply", ""), ("two", "Update", "")]
    assert "f:replicas" not in owned(patched, "one")["f:spec"]
    assert owned(patched, "two") == {"f:spec": {"f:replicas": {}}}
    refused = await server.apply(LEADER_WORKER_SETS, "llama", {"spec": lws(replicas=1)["spec"]}, "one")
    assert refused.refusal[:2] == (409, "Conflict")


async def test_a_writer_who_does_not_say_who_it_is_has_its_programs_name(server: Asking) -> None:
    made = (await server.create(CONFIG_MAPS, config_map())).ok()
    assert managers(made) == [("rollout-lws", "Update", "")]


async def test_the_status_is_owned_apart(server: Asking) -> None:
    (await server.create(LEADER_WORKER_SETS, lws(), fieldManager="one")).ok()
    body = {"status": {"replicas": 1}}
    written = (await server.patch(LEADER_WORKER_SETS, "llama", body, subresource="status", fieldManager="one")).ok()
    assert managers(written) == [("one", "Update", ""), ("one", "Update", "status")]
    applied = (await server.apply(LEADER_WORKER_SETS, "llama", body, "two", subresource="status")).ok()
    assert managers(applied)[-1] == ("two", "Apply", "status")
    body["status"]["replicas"] = 2
    refused = await server.apply(LEADER_WORKER_SETS, "llama", body, "three", subresource="status")
    owners = [f'"one" with subresource "status" using {LEADER_WORKER_SETS.api_version}']
    owners += ['"two" with subresource "status"']
    text = "\n".join(f"conflicts with {owner}:\n- .status.replicas" for owner in owners)
    assert refused.refusal == (409, "Conflict", f"Apply failed with 2 conflicts: {text}")


async def test_items_of_lists_with_keys_are_owned_one_by_one(server: Asking) -> None:
    def ports(*names: str) -> Object:
        numbers = {"http": 80, "grpc": 81}
        entries = [{"name": name, "port": numbers[name], "protocol": "TCP"} for name in names]
        return {"spec": {"ports": entries}}

    (await server.apply(SERVICES, "web", ports("http"), "one")).ok()
    both = (await server.apply(SERVICES, "web", ports("grpc"), "two")).ok()
    assert [port["name"] for port in both["spec"]["ports"]] == ["http", "grpc"]
    key = 'k:{"port":81,"protocol":"TCP"}'
    assert list(owned(both, "two")["f:spec"]["f:ports"]) == [key]
    left = (await server.apply(SERVICES, "web", {}, "two")).ok()
    assert [port["name"] for port in left["spec"]["ports"]] == ["http"]


async def test_containers_of_custom_resources_are_merged_by_name(server: Asking) -> None:
    def containers(*entries: Object) -> Object:
        template = {"spec": {"containers": list(entries)}}
        return {
            "spec": {"leaderWorkerTemplate": {"workerTemplate": template}, "rolloutStrategy": {"type": "RollingUpdate"}}
        }

    (await server.apply(LEADER_WORKER_SETS, "llama", containers({"name": "main", "image": "a:1"}), "one")).ok()
    extra: Object = {"name": "side", "image": "b:1"}
    both = (await server.apply(LEADER_WORKER_SETS, "llama", containers(extra), "two")).ok()
    found = both["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"]
    assert [each["name"] for each in found] == ["main", "side"]
    refused = await server.apply(
        LEADER_WORKER_SETS, "llama", containers({"name": "main", "image": "a:2"}, extra), "two"
    )
    path = '.spec.leaderWorkerTemplate.workerTemplate.spec.containers[name="main"].image'
    assert refused.refusal == (409, "Conflict", f'Apply failed with 1 conflict: conflict with "one": {path}')


async def test_sets_are_owned_member_by_member(server: Asking) -> None:
    one: Object = {"metadata": {"finalizers": ["example.com/a"]}}
    two: Object = {"metadata": {"finalizers": ["example.com/b"]}}
    (await server.apply(CONFIG_MAPS, "settings", one, "one")).ok()
    both = (await server.apply(CONFIG_MAPS, "settings", two, "two")).ok()
    assert both["metadata"]["finalizers"] == ["example.com/a", "example.com/b"]
    left = (await server.apply(CONFIG_MAPS, "settings", {}, "one")).ok()
    assert left["metadata"]["finalizers"] == ["example.com/b"]


async def test_an_applier_must_name_itself(server: Asking) -> None:
    body = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings"}}'
    refused = await server.patch(CONFIG_MAPS, "settings", body, "application/apply-patch+yaml")
    text = "Required value: is required for apply patch"
    message = f'PatchOptions.meta.k8s.io "" is invalid: fieldManager: {text}'
    assert refused.refusal == (422, "Invalid", message)


async def test_force_is_for_appliers_only(server: Asking) -> None:
    (await server.create(CONFIG_MAPS, config_map())).ok()
    refused = await server.patch(CONFIG_MAPS, "settings", {}, force="true")
    text = "Forbidden: may not be specified for non-apply patch"
    assert refused.refusal == (422, "Invalid", f'PatchOptions.meta.k8s.io "" is invalid: force: {text}')


async def test_an_applied_object_says_nothing_of_owners(server: Asking) -> None:
    made = (await server.apply(CONFIG_MAPS, "settings", {"data": {"a": "1"}}, "one")).ok()
    body = {"metadata": {"managedFields": made["metadata"]["managedFields"]}, "data": {"a": "2"}}
    refused = await server.apply(CONFIG_MAPS, "settings", body, "one")
    assert refused.refusal == (400, "BadRequest", "metadata.managedFields must be nil")


async def test_an_apply_may_be_bound_to_a_version(server: Asking) -> None:
    made = (await server.apply(CONFIG_MAPS, "settings", {"data": {"a": "1"}}, "one")).ok()
    version = {"resourceVersion": made["metadata"]["resourceVersion"]}
    (await server.apply(CONFIG_MAPS, "settings", {"metadata": version, "data": {"a": "2"}}, "one")).ok()
    refused = await server.apply(CONFIG_MAPS, "settings", {"metadata": version, "data": {"a": "3"}}, "one")
    assert refused.refusal[:2] == (409, "Conflict")


async def test_records_of_ownership_can_be_thrown_away(server: Asking) -> None:
    (await server.apply(CONFIG_MAPS, "settings", {"data": {"a": "1"}}, "one")).ok()
    cleared = (await server.patch(CONFIG_MAPS, "settings", {"metadata": {"managedFields": [{}]}})).ok()
    assert managers(cleared) == []


async def test_the_first_apply_to_an_object_without_records_meets_an_owner_of_all(server: Asking) -> None:
    (await server.create(PODS, pod(labels={"a": "1"}))).ok()
    (await server.patch(PODS, "web", {"metadata": {"managedFields": [{}]}})).ok()
    refused = await server.apply(PODS, "web", {"metadata": {"labels": {"a": "2"}}}, "one")
    message = 'Apply failed with 1 conflict: conflict with "before-first-apply" using v1: .metadata.labels.a'
    assert refused.refusal == (409, "Conflict", message)
