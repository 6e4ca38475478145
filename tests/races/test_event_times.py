"""A writer that has waited for a row tells its events after those of the one that had it, and at no earlier time."""

import threading

import pytest
from django.db import transaction

from tests.factories import ErrandFactory, claim_of, columns_of, events_of, told, write
from tests.races.invariants import assert_all_hold
from tests.stepping import DEADLINE_SECONDS
from tests.testwork import lifecycle as errands
from work import clock, lifecycle
from work.changes import EventDraft

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("writer")]


def assert_times_rise(row):
    times = list(events_of(row).values_list("at", flat=True))
    assert times == sorted(times)
    assert columns_of(row)["last_event_at"] == times[-1]
    assert_all_hold()


def note(row):
    return lifecycle.record(errands.ERRAND, row.pk, "NOTE")


def lines(number):
    return [EventDraft("LOG", clock.now(), message=f"line {n}") for n in range(number)]


def write_batch(row, batch):
    return lifecycle.record_many(claim_of(row), batch)


def end_with_batch(row, batch):
    claim = claim_of(row)
    claim.pending_events = lambda: batch
    return lifecycle.finish(claim, "succeed")


SECONDS = {
    "an event": lambda row, batch: note(row),
    "a batch": write_batch,
    "an end": lambda row, batch: lifecycle.finish(claim_of(row), "succeed"),
    "an end with a batch": end_with_batch,
    "a request to cancel": lambda row, batch: lifecycle.cancel(errands.ERRAND, row.pk, actor="olga"),
}


@pytest.mark.parametrize("second", SECONDS.values(), ids=SECONDS)
def test_who_has_waited_for_a_row_is_not_before_who_had_it(threads, second):
    row = ErrandFactory(status="doing")
    is_locked, somebody_waits = threading.Event(), threading.Event()
    batch = lines(3)

    def first():
        with transaction.atomic():
            assert note(row)
            is_locked.set()
            assert somebody_waits.wait(DEADLINE_SECONDS)
            # Later than the time that whoever waits has taken.
            return note(row)

    one = threads.start(first)
    assert is_locked.wait(DEADLINE_SECONDS)
    two = threads.start(lambda: second(row, batch))
    assert two.waits()
    somebody_waits.set()

    assert one.answer()
    assert two.answer()
    assert told(row)[2:4] == ["NOTE", "NOTE"]
    assert_times_rise(row)


@pytest.mark.parametrize("second", SECONDS.values(), ids=SECONDS)
def test_who_has_waited_for_a_row_that_an_older_version_wrote_is_not_before_who_had_it(threads, second):
    row = ErrandFactory(status="doing")
    batch = lines(3)
    write(row, last_event_at=None, previous_event_at=None)
    held = threads.hold(lambda: note(row))

    two = threads.start(lambda: second(row, batch))
    assert two.waits()
    held.commit()

    assert two.answer()
    assert_times_rise(row)


def test_what_was_written_and_taken_back_raises_nothing(threads):
    row = ErrandFactory(status="doing")
    moment = clock.now()
    held = threads.hold(lambda: write_batch(row, lines(3)))

    two = threads.start(lambda: write_batch(row, [EventDraft("LOG", moment)]))
    assert two.waits()
    held.roll_back()

    assert two.answer()
    assert events_of(row).last().at == moment
