import pytest

from tests.factories import ErrandFactory, and_told, claim_of, columns_of, events_of, holder_for, told
from tests.testwork import lifecycle as errands
from tests.writers import WRITERS
from work import clock, lifecycle
from work.changes import WARNING, EventDraft
from work.models import Event

pytestmark = pytest.mark.django_db


@pytest.fixture(params=WRITERS)
def writer(request, monkeypatch):
    monkeypatch.setattr(lifecycle, "_writer", lambda: request.param)


@pytest.fixture
def errand():
    return ErrandFactory(status="doing")


def lines(number):
    return [EventDraft("LOG", clock.now(), "", f"line {n}") for n in range(number)]


def test_an_event_that_is_no_move_leaves_the_status_alone(errand, writer):
    before = columns_of(errand)

    assert lifecycle.record(
        errands.ERRAND, errand.pk, "NOTE", actor="olga", message="hello", data={"n": 1}, level=WARNING
    )

    assert columns_of(errand) == and_told(before, errand)
    event = events_of(errand).last()
    assert (event.kind, event.from_status, event.to_status) == ("NOTE", "", "")
    assert (event.actor, event.message, event.data, event.level) == ("olga", "hello", {"n": 1}, WARNING)
    assert (event.sequence, event.claim_token) == (errand.last_sequence + 1, 1)


def test_an_event_may_bring_columns_with_it(errand, writer):
    assert lifecycle.record(errands.ERRAND, errand.pk, "NOTE", claim=claim_of(errand), result="half")

    errand.refresh_from_db()
    assert errand.result == "half"


@pytest.mark.parametrize("stale", [{"owner": "w2@here:102:boot2"}, {"token": 0}, {"token": 2}])
def test_a_claim_that_is_gone_records_nothing_but_that(errand, writer, stale):
    claim = claim_of(errand, **stale)

    assert not lifecycle.record(errands.ERRAND, errand.pk, "NOTE", claim=claim, result="half")
    assert not lifecycle.record_many(claim, lines(3))

    errand.refresh_from_db()
    assert errand.result == ""
    assert set(told(errand)[2:]) == {"LATE_WRITE_REFUSED"}


@pytest.mark.usefixtures("history_is_open")
def test_a_row_that_is_gone_takes_no_events(errand, writer):
    claim = claim_of(errand)
    errand.delete()
    Event.objects.all().delete()

    assert not lifecycle.record(errands.ERRAND, errand.pk, "NOTE")
    assert not lifecycle.record_many(claim, lines(3))

    assert not Event.objects.exists()


def test_many_events_are_recorded_in_their_order(errand, writer):
    assert lifecycle.record_many(claim_of(errand), lines(3))

    events = events_of(errand).filter(kind="LOG")
    assert [(e.sequence, e.message, e.claim_token) for e in events] == [
        (3, "line 0", 1),
        (4, "line 1", 1),
        (5, "line 2", 1),
    ]
    errand.refresh_from_db()
    assert errand.last_sequence == 5


def test_what_events_say_is_kept_as_it_was_told(errand, writer):
    entries = [
        EventDraft("LOG", clock.now(), "w1", "a line “quoted” \\ 'so'", {"stream": "stdout", "n": [1, None]}, WARNING),
        EventDraft("STEP", clock.now(), "w2", "", None),
    ]

    assert lifecycle.record_many(claim_of(errand), entries)

    found = events_of(errand)[2:]
    assert [(e.kind, e.at, e.actor, e.message, e.data, e.level, e.from_status, e.to_status) for e in found] == [
        (told.kind, told.at, told.actor, told.message, told.data, told.level, "", "") for told in entries
    ]


def test_what_a_claim_has_not_told_yet_is_written_with_its_end(errand, writer):
    claim = claim_of(errand)
    claim.pending_events = lambda: lines(2)

    assert lifecycle.finish(claim, "succeed", result="done")

    assert told(errand)[2:] == ["LOG", "LOG", "ERRAND_DONE"]
    assert [e.sequence for e in events_of(errand)] == [1, 2, 3, 4, 5]
    assert {e.claim_token for e in events_of(errand)[2:]} == {1}
    errand.refresh_from_db()
    assert errand.last_sequence == 5


def test_what_goes_with_an_end_that_is_refused_is_not_written(errand, writer):
    claim = claim_of(errand)
    claim.pending_events = lambda: lines(2)
    lifecycle.cancel(errands.ERRAND, errand.pk, actor="olga")
    made = []

    assert not lifecycle.finish(
        claim, "succeed", also=lambda: made.append(ErrandFactory()), guards={"cancel_requested_at__isnull": True}
    )
    assert not lifecycle.finish(claim, "succeed", guards={"cancel_requested_at__isnull": True})

    assert made
    assert type(errand)._base_manager.count() == 1
    assert told(errand)[2:] == ["ERRAND_CANCEL_REQUESTED"]


def test_what_is_made_with_an_end_comes_between_what_was_told_and_the_end(errand, writer):
    claim = claim_of(errand)
    claim.pending_events = lambda: lines(1)

    assert lifecycle.finish(
        claim, "succeed", also=lambda: lifecycle.record(errands.ERRAND, errand.pk, "NOTE", claim=claim)
    )

    assert told(errand)[2:] == ["LOG", "NOTE", "ERRAND_DONE"]


def test_the_child_that_does_the_work_is_remembered_by_its_holder_only(errand, writer):
    child = {"host": "here", "machine": "m", "pid": 7, "start_ticks": 1}

    assert lifecycle.record_process(claim_of(errand), child)
    assert not lifecycle.record_process(claim_of(errand, token=2), {**child, "pid": 8})

    errand.refresh_from_db()
    assert errand.process == child
    assert told(errand)[2:] == ["LATE_WRITE_REFUSED"]


def test_sequences_have_no_gaps_whatever_writes_them(errand, writer):
    claim = claim_of(errand)

    lifecycle.record(errands.ERRAND, errand.pk, "NOTE")
    lifecycle.record_many(claim, lines(2))
    lifecycle.cancel(errands.ERRAND, errand.pk, actor="olga")
    errands.succeed(claim, "refused")
    lifecycle.record_many(claim, lines(2))
    errands.stop(claim)
    errands.fail(claim, ValueError("too late"))

    errand.refresh_from_db()
    numbers = list(events_of(errand).values_list("sequence", flat=True))
    assert numbers == list(range(1, errand.last_sequence + 1))
    assert told(errand).count("LOG") == 4


def test_the_sequences_of_two_rows_are_their_own(writer):
    one, other = ErrandFactory(), ErrandFactory()

    lifecycle.record(errands.ERRAND, one.pk, "NOTE")
    lifecycle.record(errands.ERRAND, other.pk, "NOTE")

    for row in (one, other):
        assert list(events_of(row).values_list("sequence", flat=True)) == [1, 2]


def test_events_are_append_only(errand):
    event = events_of(errand).last()
    event.message = "rewritten"

    with pytest.raises(TypeError):
        event.save()


@pytest.mark.parametrize("text", ["a\0b", "half a pair \ud800", "\0\udfff"], ids=ascii)
def test_text_that_a_database_refuses_is_stored_without_what_it_refuses(errand, writer, text):
    clean = text.replace("\0", "").encode(errors="replace").decode()

    assert lifecycle.record(errands.ERRAND, errand.pk, "NOTE", message=text, data={"text": text})
    holder = holder_for(errand, errands.ERRAND["fail"])
    assert lifecycle.move(errands.ERRAND, errand.pk, "fail", holder=holder, message=text, error_message=text)

    errand.refresh_from_db()
    note, end = events_of(errand).filter(sequence__gt=2)
    assert (errand.error_message, note.message, note.data, end.message) == (clean, clean, {"text": clean}, clean)
