"""Certificates by a fixed clock: whom they name, how long they last, and in which order they are replaced."""

from __future__ import annotations

import base64
import ipaddress
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from rollout_lws.admission.bundle import LIMIT, MOST, STAYED, Backoff, has, merged
from rollout_lws.admission.certificates import GRACE, LIFETIME, Identity, Rotation, issue

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOST = "rollout-lws-guard.tools.svc"


def made(now: datetime = NOW) -> Identity:
    return issue([HOST], now)


def bundle(*authorities: bytes) -> str:
    return base64.b64encode(b"".join(authorities)).decode()


def test_a_server_is_named_and_signed_by_its_own_authority_and_by_no_other() -> None:
    found = issue([HOST, "127.0.0.1"], NOW)
    authority, certificate = (x509.load_pem_x509_certificate(each) for each in (found.authority, found.certificate))
    certificate.verify_directly_issued_by(authority)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == [HOST]
    assert names.get_values_for_type(x509.IPAddress) == [ipaddress.ip_address("127.0.0.1")]
    assert authority.extensions.get_extension_for_class(x509.BasicConstraints).value.path_length == 0
    assert load_pem_private_key(found.key, None).public_key() == certificate.public_key()
    other = x509.load_pem_x509_certificate(made().authority)
    assert other.subject != authority.subject
    for each in (authority, certificate):
        assert each.not_valid_before_utc <= NOW - timedelta(minutes=30)
        assert each.not_valid_after_utc == found.until == NOW + LIFETIME


def test_it_is_renewed_at_two_thirds_of_its_life() -> None:
    assert made().renewed_at == NOW + LIFETIME * 2 / 3 == NOW + timedelta(days=20)


def test_the_next_one_is_shown_a_while_after_it_is_trusted_and_not_before() -> None:
    first, second = made(), made(NOW + timedelta(days=20))
    due = first.renewed_at
    assert not Rotation(first).needs_next(due - timedelta(seconds=1))
    assert Rotation(first).needs_next(due)
    assert Rotation(first).wake_at == due
    waits = Rotation(first, second)
    assert not waits.needs_next(due)
    assert waits.authorities == (first.authority, second.authority)
    # However long nobody can write the bundles: it would be trusted by nobody.
    assert waits.wake_at is None
    assert waits.turned(due + timedelta(days=5)) is waits
    trusted = waits.trusted(due)
    assert trusted.trusted(due + GRACE) == trusted
    assert trusted.wake_at == due + GRACE
    assert trusted.turned(due + GRACE - timedelta(seconds=1)).serving is first
    assert trusted.turned(due + GRACE) == Rotation(second)
    assert Rotation(second).authorities == (second.authority,)
    assert Rotation(first).trusted(due) == Rotation(first)


def test_two_replicas_share_a_bundle_and_nothing_else() -> None:
    mine, yours = made(), made()
    both = merged(merged("", [mine.authority], NOW), [yours.authority], NOW)
    assert has(both, mine.authority) and has(both, yours.authority)
    assert merged(both, [mine.authority], NOW) == both
    assert base64.b64decode(both).count(b"PRIVATE") == 0


def test_what_has_expired_goes_and_what_others_have_put_there_stays() -> None:
    old, mine = made(NOW - LIFETIME - timedelta(days=1)), made()
    foreign = x509.load_pem_x509_certificate(_foreign())
    text = merged(bundle(old.authority, _foreign()), [mine.authority], NOW)
    assert not has(text, old.authority)
    assert has(text, mine.authority) and has(text, _foreign())
    assert foreign.subject.rfc4514_string() == "CN=somebody"


_FOREIGN: list[bytes] = []


def _foreign() -> bytes:
    if not _FOREIGN:
        from tests.e2e.certificates import Authority

        # As old as the calendar of this test is young.
        _FOREIGN.append(Authority("somebody").certificate)
    return _FOREIGN[0]


def test_what_is_no_bundle_is_replaced() -> None:
    mine = made()
    for wrong in ("", "no base64", base64.b64encode(b"no certificate").decode(), bundle(mine.key)):
        assert not has(wrong, mine.authority)
        assert merged(wrong, [mine.authority], NOW) == bundle(mine.authority)


def test_processes_that_come_and_go_do_not_fill_it() -> None:
    mine = made(NOW - timedelta(days=10))
    text = merged("", [mine.authority], NOW)
    crashed = [made(NOW - timedelta(days=9) + timedelta(hours=hour)) for hour in range(LIMIT + 3)]
    for each in crashed:
        text = merged(text, [each.authority], NOW)
    kept = x509.load_pem_x509_certificates(base64.b64decode(text))
    assert len(kept) == LIMIT
    # The oldest had to go, though it is alive; it comes back, and nobody goes.
    assert not has(text, mine.authority)
    text = merged(text, [mine.authority], NOW, {mine.authority})
    assert has(text, mine.authority) and has(text, crashed[3].authority)
    assert len(base64.b64decode(text)) < 32_000


def test_replicas_that_put_themselves_back_come_to_rest() -> None:
    alive = [made(NOW - timedelta(days=10)), made(NOW - timedelta(days=10))]
    text = ""
    crashed = [made(NOW - timedelta(days=9) + timedelta(hours=hour)) for hour in range(40)]
    for each in (*alive, *crashed):
        text = merged(text, [each.authority], NOW)
    writes = 0
    for _ in range(5):
        for each in alive:
            after = merged(text, [each.authority], NOW, {each.authority})
            writes += after != text
            text = after
    assert writes == len(alive)
    assert all(has(text, each.authority) for each in alive)


def test_what_comes_back_is_bounded_too() -> None:
    mine = made(NOW - timedelta(days=10))
    others = bundle(*(made(NOW + timedelta(minutes=each)).authority for each in range(MOST)))
    text = merged(others, [mine.authority], NOW, {mine.authority})
    assert has(text, mine.authority)
    assert len(x509.load_pem_x509_certificates(base64.b64decode(text))) == MOST


def test_a_clock_that_is_ahead_takes_others_out_once() -> None:
    """It comes with its own, and they with theirs; then nobody has anything to write."""
    here, ahead = made(), made(NOW + timedelta(days=40))
    text = merged(bundle(here.authority), [ahead.authority], NOW + timedelta(days=40))
    assert not has(text, here.authority)
    text = merged(text, [here.authority], NOW, {here.authority})
    assert has(text, here.authority) and has(text, ahead.authority)
    assert merged(text, [ahead.authority], NOW + timedelta(days=40)) == text


def test_a_clock_that_is_ahead_by_hours_takes_nobody_out() -> None:
    here, ahead = made(), made(NOW + LIFETIME + timedelta(hours=20))
    assert has(merged(bundle(here.authority), [ahead.authority], ahead.since), here.authority)


def test_each_wait_is_twice_as_long_as_the_last_until_it_has_stayed() -> None:
    now, it, pauses = 0.0, Backoff(), []
    for _ in range(11):
        it = it.vanished(now, 0.0)
        assert it.due is not None and it.vanished(it.due, 1.0) is it
        pauses.append(it.due - now)
        now = it.due
        it = it.put_back(now)
    assert pauses == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
    assert it.vanished(now + STAYED, 1.0).due == now + STAYED + 1.5
    assert it.vanished(now, 0.0).there().due is None
