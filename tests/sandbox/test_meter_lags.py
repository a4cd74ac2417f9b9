"""How late a data plane is: by the seed, in order, and never later than the lag."""

from __future__ import annotations

from rollout_lws.objects.resources import SERVICES
from rollout_lws.sandbox.meter.data_plane import DataPlane


def test_the_same_seed_gives_the_same_lags_whatever_else_changes() -> None:
    def lags(seed: str, others: int) -> list[float | None]:
        plane = DataPlane(seed, 2.0)
        for number in range(others):
            plane.learn((SERVICES, "default", f"other-{number}"), {"n": 1}, 0.0)
            plane.see(9.0)
        found = []
        for number in range(5):
            plane.learn((SERVICES, "default", "llama"), {"n": number}, 10.0 * number)
            found.append(plane.due)
            plane.see(10.0 * number + 2)
        return found

    assert lags("1", 0) == lags("1", 3) != lags("2", 0)


def test_changes_of_one_object_are_seen_in_order() -> None:
    plane, key = DataPlane("1", 2.0), (SERVICES, "default", "llama")
    for number in range(50):
        plane.learn(key, {"n": number}, number / 100)
    seen = []
    while plane.due is not None:
        plane.see(plane.due)
        found = plane.seen.get(*key)
        assert found is not None
        seen.append(found["n"])
    assert seen == sorted(seen)
    assert seen[-1] == 49
