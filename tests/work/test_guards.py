"""History is append-only in the database itself; only retention deletes."""

import pytest
from django.db import DatabaseError, connection, transaction

from tests.factories import ErrandFactory, events_of
from work.models import Event
from work.sql import guards

pytestmark = pytest.mark.django_db

CHANGES = {
    "change": "UPDATE events SET message = 'nothing happened'",
    "delete": "DELETE FROM events",
}


@pytest.fixture
def errand():
    return ErrandFactory(status="done")


def refused(sql):
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql)


@pytest.mark.parametrize("sql", CHANGES.values(), ids=CHANGES)
def test_sql_cannot_change_or_delete_events(errand, sql):
    before = list(events_of(errand).values())

    refused(sql)

    assert list(events_of(errand).values()) == before


@pytest.mark.only_on("postgresql")
def test_they_cannot_be_truncated(errand):
    refused("TRUNCATE events")


def test_models_cannot_either(errand):
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        Event.objects.all().delete()
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        Event.objects.update(message="nothing happened")


def test_retention_deletes_them_and_changes_none(errand):
    with guards.retention():
        events_of(errand).filter(sequence=1).delete()
    assert not events_of(errand).filter(sequence=1).exists()

    refused(CHANGES["delete"])
    with pytest.raises(DatabaseError, match="append-only"), guards.retention():
        Event.objects.update(message="nothing happened")


def test_a_retention_that_failed_leaves_them_guarded(errand):
    with pytest.raises(ZeroDivisionError), guards.retention():
        raise ZeroDivisionError

    refused(CHANGES["delete"])
