from datetime import timedelta

import pytest
from django.conf import settings
from django.db import connection

from tests.breaches import assert_all_hold, breaches, execute, much_has_happened, plant, unguard
from tests.factories import MOVES, ErrandFactory, expire_lease
from work import boots, clock, invariants
from work.invariants import Dialect, all_invariants
from work.models import Event, Work

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("history_is_open")]

WORKS = [model for model in MOVES if issubclass(model, Work)]
CLAIMED = [model for model in WORKS if model.CLAIMED]
A_LIFE = timedelta(days=9000)


@pytest.fixture(autouse=True)
def world(db):
    much_has_happened()


def some(model, **columns):
    row = model._base_manager.filter(**columns).order_by("id").first()
    assert row is not None, (model, columns)
    return row


def some_each(models, choose=lambda model: {}):
    """Create one row of each kind."""
    return [some(model, **choose(model)) for model in models]


def plant_each(rows, **columns):
    unguard(*{type(row) for row in rows})
    for row in rows:
        plant(row, **columns)


def named(rows):
    return sorted((MOVES[type(row)].kind, row.pk) for row in rows)


def events_of(row):
    return Event.objects.filter(subject_kind=MOVES[type(row)].kind, subject_id=row.pk).order_by("sequence")


def words(model):
    states = MOVES[model]
    return {states.initial, *(states[verb].target for verb in states)}


def test_all_hold_when_much_has_happened():
    assert_all_hold()


def test_each_says_what_it_promises_and_what_to_do():
    names = [invariant.name for invariant in all_invariants()]

    assert len(set(names)) == len(names)
    for invariant in all_invariants():
        assert invariant.promise.endswith(".")
        assert invariant.advice.endswith(".")


def test_each_is_broken_by_a_test():
    tests = "".join(path.read_text() for path in settings.BASE_DIR.glob("tests/**/test_*.py"))

    for invariant in all_invariants():
        assert f'breaches("{invariant.name}")' in tests


@pytest.mark.parametrize("vendor", ["sqlite", "postgresql", "microsoft"])
def test_the_sql_is_plain(vendor):
    for invariant in all_invariants():
        sql = invariant.sql(Dialect(vendor, clock.now()))
        for word in ("WITH ", "LIMIT ", "||", "::", "GROUP BY 1"):
            assert word not in sql, invariant.name


def test_a_status_that_no_event_tells():
    rows = some_each(MOVES)
    unguard(*MOVES)
    for row in rows:
        plant(row, status=next(word for word in words(type(row)) if word != row.status))

    assert sorted(breaches("status_is_that_of_the_last_event")) == named(rows)


def test_a_row_without_events():
    rows = some_each(MOVES)
    for row in rows:
        events_of(row).delete()

    assert sorted(breaches("status_is_that_of_the_last_event")) == named(rows)
    assert sorted(breaches("events_are_numbered_without_gaps")) == named(rows)


@pytest.mark.parametrize(
    ("statuses", "columns"),
    [
        pytest.param(lambda model: model.TERMINAL, {"finished_at": None}, id="no end"),
        pytest.param(lambda model: [model.ACTIVE], {"finished_at": clock.now()}, id="an end too early"),
        pytest.param(lambda model: [model.ACTIVE], {"started_at": None}, id="no start"),
        pytest.param(lambda model: [model.ACTIVE], {"started_at": clock.now() - A_LIFE}, id="started before created"),
        pytest.param(lambda model: model.TERMINAL, {"finished_at": clock.now() - A_LIFE}, id="ended before created"),
        pytest.param(lambda model: [model.ACTIVE], {"status": "nonsense"}, id="an unknown status"),
    ],
)
def test_times_that_do_not_agree(statuses, columns):
    rows = some_each(WORKS, lambda model: {"status__in": statuses(model)})
    plant_each(rows, **columns)

    assert sorted(breaches("times_agree_with_the_status")) == named(rows)


def test_a_start_of_what_has_not_started():
    waiting = {model: words(model) - {model.ACTIVE} - model.TERMINAL for model in WORKS}
    rows = some_each([model for model in WORKS if waiting[model]], lambda model: {"status__in": waiting[model]})
    plant_each(rows, started_at=clock.now())

    assert sorted(breaches("times_agree_with_the_status")) == named(rows)


@pytest.mark.parametrize("columns", [{"lease_owner": None}, {"lease_expires_at": None}, {"claim_token": 0}], ids=str)
def test_a_claim_that_would_never_end(columns):
    rows = some_each(CLAIMED, lambda model: {"status": model.CLAIMED})
    plant_each(rows, **columns)

    assert sorted(breaches("a_lease_is_held_exactly_while_claimed")) == named(rows)


@pytest.mark.parametrize("columns", [{"lease_owner": "w"}, {"lease_expires_at": clock.now()}], ids=["owner", "end"])
def test_a_lease_on_what_nobody_holds(columns):
    rows = some_each(WORKS, lambda model: {"status__in": model.TERMINAL})
    plant_each(rows, **columns)

    assert sorted(breaches("a_lease_is_held_exactly_while_claimed")) == named(rows)


def test_an_end_under_another_token_than_its_start():
    ends = {model: Event.objects.filter(subject_kind=MOVES[model].kind, from_status=model.CLAIMED) for model in CLAIMED}
    ends = {model: found.exclude(to_status=model.CLAIMED).earliest("id") for model, found in ends.items()}
    for end in ends.values():
        plant(end, claim_token=end.claim_token + 1)

    expected = sorted((end.subject_kind, end.subject_id) for end in ends.values())
    assert sorted(breaches("moves_follow_one_another_under_one_claim")) == expected


def test_a_claim_that_does_not_raise_the_token():
    row = ErrandFactory(status="doing")
    plant(events_of(row).get(kind="ERRAND_STARTED"), claim_token=0)

    assert breaches("moves_follow_one_another_under_one_claim") == [("errand", row.pk)]


def test_a_move_from_where_the_row_was_not():
    rows = some_each(MOVES)
    for row in rows:
        plant(events_of(row).first(), from_status="nonsense")

    assert sorted(breaches("moves_follow_one_another_under_one_claim")) == named(rows)


def test_an_event_that_is_missing():
    rows = some_each(MOVES, lambda model: {"last_sequence__gt": 1})
    for row in rows:
        events_of(row).first().delete()

    assert sorted(breaches("events_are_numbered_without_gaps")) == named(rows)


def test_an_event_of_a_worker_that_is_missing():
    row = boots.register("w9", "boot-9", {})
    Event.objects.filter(subject_kind="worker", subject_id=row.pk).delete()

    assert breaches("events_are_numbered_without_gaps") == [("worker", row.pk)]


def test_a_row_that_does_not_know_its_last_event():
    row = ErrandFactory()
    plant(row, last_sequence=7)

    assert breaches("events_are_numbered_without_gaps") == [("errand", row.pk)]


def test_an_event_that_is_earlier_than_the_one_before_it():
    rows = some_each(MOVES, lambda model: {"last_sequence__gt": 1})
    for row in rows:
        plant(events_of(row).first(), at=clock.now() + A_LIFE)

    assert sorted(breaches("event_times_never_decrease")) == named(rows)


def test_times_of_events_of_long_ago_are_not_compared(monkeypatch):
    row = ErrandFactory(status="doing")
    plant(events_of(row).first(), at=clock.now() + A_LIFE)
    ErrandFactory(status="doing")

    for newest, found in ((4, [("errand", row.pk)]), (2, [])):
        monkeypatch.setattr(invariants, "NEWEST_EVENTS", newest)
        assert breaches("event_times_never_decrease") == found


def test_lost_work_that_is_left_lying():
    rows = [expire_lease(row, seconds=61) for row in some_each(CLAIMED, lambda model: {"status": model.CLAIMED})]

    assert sorted(breaches("lost_work_is_moved_on")) == named(rows)


def test_lost_work_waits_for_a_worker_and_some_time():
    errand = expire_lease(ErrandFactory(status="doing"), seconds=50)
    assert breaches("lost_work_is_moved_on") == []
    expire_lease(errand, seconds=61)
    assert breaches("lost_work_is_moved_on") == [("errand", errand.pk)]

    execute("UPDATE workers SET stopped_at = heartbeat_at")

    assert breaches("lost_work_is_moved_on") == []


def test_a_moment_later_can_be_compared():
    dialect, errand = Dialect(connection.vendor, clock.now()), ErrandFactory()
    before, after = (errand.created_at + timedelta(seconds=seconds) for seconds in (1.9, 2.1))
    later = dialect.later("created_at", 2)

    for moment, found in ((before, 1), (after, 0)):
        compared = f"SELECT COUNT(*) FROM errands WHERE id = {errand.pk} AND {later} > {dialect.moment(moment)}"  # noqa: S608
        with connection.cursor() as cursor:
            cursor.execute(compared)
            assert cursor.fetchone() == (found,)
