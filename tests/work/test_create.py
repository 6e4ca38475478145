import pytest
from django.db import IntegrityError, transaction

from tests.factories import DocumentFactory, columns_of, events_of, told
from tests.testwork.lifecycle import ERRAND
from tests.testwork.models import Errand
from tests.writers import WRITERS
from work import clock, lifecycle
from work.models import Event

# Strings that careless SQL or JSON code would misinterpret.
TRICKY = [
    "1",
    "null",
    "true",
    "",
    "a'b",
    '"c"',
    "100%",
    "%s",
    "%(x)s",
    "{}",
    "[1]",
    "é 漢 \U0001f600",
    "line\nline",
    "\\",
]

pytestmark = pytest.mark.django_db


@pytest.fixture(params=WRITERS, autouse=True)
def writer(request, monkeypatch):
    monkeypatch.setattr(lifecycle, "_writer", lambda: request.param)


def test_a_row_begins_in_the_initial_status_of_its_kind():
    before = clock.now()

    (id,) = lifecycle.create(ERRAND, {"script": "noop"}, actor="olga", message="please", data={"n": 1})

    row = Errand.objects.get(pk=id)
    assert (row.status, row.script, row.last_sequence, row.claim_token) == ("queued", "noop", 1, 0)
    assert (row.started_at, row.finished_at, row.lease_owner, row.process) == (None, None, None, None)
    assert before <= row.created_at <= clock.now()
    event = events_of(row).get()
    assert (event.kind, event.from_status, event.to_status, event.sequence) == ("ERRAND_QUEUED", "", "queued", 1)
    assert (event.actor, event.message, event.data, event.at) == ("olga", "please", {"n": 1}, row.created_at)


def test_the_row_that_is_answered_is_the_row_that_is_stored():
    row = lifecycle.create_one(ERRAND, {"script": "noop"})

    assert isinstance(row, Errand)
    assert not row._state.adding
    assert {f.attname: getattr(row, f.attname) for f in Errand._meta.concrete_fields} == columns_of(row)


def test_many_rows_are_made_in_the_order_of_what_varies():
    ids = lifecycle.create(ERRAND, {"result": "same"}, varying={"script": TRICKY})

    assert ids == sorted(ids)
    assert [Errand.objects.get(pk=id).script for id in ids] == TRICKY
    assert set(Errand.objects.values_list("result", flat=True)) == {"same"}
    assert [told(row) for row in Errand.objects.all()] == [["ERRAND_QUEUED"]] * len(TRICKY)


def test_of_columns_that_vary_together_each_row_has_its_own():
    scripts, results = ["a", "b", "c"], ["1", "2", "3"]

    ids = lifecycle.create(ERRAND, {}, varying={"script": scripts, "result": results})

    rows = Errand.objects.in_bulk(ids)
    assert [(rows[id].script, rows[id].result) for id in ids] == list(zip(scripts, results, strict=True))


@pytest.mark.parametrize("text", TRICKY)
def test_text_is_stored_as_it_is(text):
    (id,) = lifecycle.create(ERRAND, {"script": text}, actor=text, message=text, data={"text": text, text or "-": 1})
    assert lifecycle.move(ERRAND, id, "cancel", actor=text, message=text, data={"text": text}, result=text)

    row = Errand.objects.get(pk=id)
    assert (row.script, row.result) == (text, text)
    for event in events_of(row):
        assert (event.actor, event.message, event.data["text"]) == (text, text, text)


@pytest.mark.parametrize("data", [None, {}, {"a": [1, 2.5, None, True, {"b": "c"}]}], ids=str)
def test_the_data_of_an_event_comes_back_as_it_was(data):
    (id,) = lifecycle.create(ERRAND, {}, data=data)

    assert events_of(Errand.objects.get(pk=id)).get().data == data


def test_no_row_is_left_without_its_event_and_no_event_without_its_row():
    with pytest.raises(IntegrityError), transaction.atomic():
        lifecycle.create(ERRAND, {}, varying={"script": ["a", None]})

    assert not Errand.objects.exists()
    assert not Event.objects.exists()


def test_what_is_no_work_has_events_too():
    document = DocumentFactory()

    event = events_of(document).get()
    assert (event.kind, event.sequence, event.claim_token) == ("DOCUMENT_ADDED", 1, 0)
