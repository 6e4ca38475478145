from datetime import timedelta

import pytest

from schedules import lease
from schedules.models import SchedulerLease
from tests.factories import W1, W2, write
from work import boots, clock

pytestmark = pytest.mark.django_db


def expires_in(seconds):
    SchedulerLease.objects.update(expires_at=clock.now() + timedelta(seconds=seconds))


def test_the_first_worker_has_it():
    assert lease.take(W1)

    assert lease.holder() == W1


def test_a_second_one_has_not():
    lease.take(W1)

    assert not lease.take(W2)

    assert lease.holder() == W1


def test_it_is_renewed_when_half_of_it_is_over(settings):
    lease.take(W1)
    expires_in(settings.ADE_LEASE_SECONDS / 2 - 1)

    assert lease.take(W1)

    left = SchedulerLease.objects.get().expires_at - clock.now()
    assert left > timedelta(seconds=settings.ADE_LEASE_SECONDS - 5)


def test_it_is_not_written_at_every_look(django_assert_num_queries):
    lease.take(W1)

    with django_assert_num_queries(1):
        assert lease.take(W1)


def test_it_goes_to_another_when_it_has_run_out():
    lease.take(W1)
    expires_in(-1)

    assert lease.take(W2)

    assert not lease.take(W1)
    assert lease.holder() == W2


def test_it_goes_to_another_at_once_when_its_worker_has_stopped():
    row = boots.register("w1", "boot1", {})
    lease.take(row.owner)
    write(row, stopped_at=clock.now())

    assert lease.take(W2)


def test_nobody_holds_one_that_has_run_out():
    lease.take(W1)
    expires_in(-1)

    assert lease.holder() is None


def test_one_that_was_renewed_between_look_and_write_is_not_taken(monkeypatch):
    row = boots.register("w1", "boot1", {})
    write(row, stopped_at=clock.now())
    lease.take(row.owner)

    def renewed_meanwhile(owner):
        expires_in(7)
        return True

    monkeypatch.setattr(lease, "_has_stopped", renewed_meanwhile)

    assert not lease.take(W2)

    assert lease.holder() == row.owner


@pytest.mark.django_db(transaction=True)
def test_of_many_at_once_one_gets_it(threads):
    taken = threads.together([lambda n=n: lease.take(f"w{n}@here:{n}:boot{n}") for n in range(8)])

    assert sum(taken) == 1
