"""Operators run a configuration over many documents at once."""

import csv
import io
import re

import pytest

from runs.models import Run
from tests.factories import (
    BuildFactory,
    ConfigurationFactory,
    DocumentFactory,
    MembershipFactory,
    RunFactory,
    UserFactory,
    events_of,
    write,
)
from work import clock
from work.operations import once

pytestmark = [pytest.mark.edge, pytest.mark.django_db]

PAGE = "/documents/run/"
START = "/documents/run/start/"


@pytest.fixture
def documents(workspace):
    return [DocumentFactory(workspace=workspace, name=f"{n}.pdf", status="processed") for n in range(3)]


@pytest.fixture
def chooser(seen_by, olga, configuration):
    return lambda user=olga, more="": seen_by(user, f"{PAGE}?configuration={configuration.pk}{more}")


def text_of(page):
    return " ".join(page.content.decode().split())


def rows_of(page):
    return {row["document"].pk: row for row in page.context["each"]}


def chosen_on(page):
    return [pk for pk, row in rows_of(page).items() if row["is_chosen"]]


def form_of(page, ids=None):
    ids = chosen_on(page) if ids is None else ids
    return {"once": page.context["once"], "configuration": page.context["configuration"].pk, "id": ids}


def test_whoever_has_a_choice_of_configurations_chooses_first(seen_by, olga, configuration, documents):
    ConfigurationFactory(name="of strangers")

    page = seen_by(olga, PAGE)

    assert f">{configuration.name} ({configuration.workspace.name})</option>" in text_of(page)
    assert "of strangers" not in text_of(page)
    assert "each" not in page.context


def test_the_documents_that_it_has_not_run_over_are_chosen(chooser, documents, configuration, workspace):
    done, new, newest = documents
    build = BuildFactory(configuration=configuration, status="ready")
    RunFactory(configuration=configuration, build=build, input_document=done, status="failed")
    latest = RunFactory(configuration=configuration, build=build, input_document=done, status="succeeded")
    DocumentFactory(status="processed")

    page = chooser()

    assert list(rows_of(page)) == [newest.pk, new.pk, done.pk]
    assert chosen_on(page) == [newest.pk, new.pk]
    assert f'<a href="/runs/{latest.pk}/">{latest.pk}</a>' in text_of(page)
    assert {row["expected"] for row in rows_of(page).values()} == {"will be queued"}


def test_what_cannot_be_run_over_is_not_chosen_and_says_why(chooser, documents):
    failed, purged, ready = documents
    write(failed, status="failed")
    write(purged, purged_at=clock.now(), file="")

    page = chooser()

    assert chosen_on(page) == [ready.pk]
    rows = rows_of(page)
    assert rows[failed.pk]["expected"] == "document could not be processed"
    assert rows[purged.pk]["expected"] == "was purged"
    assert text_of(page).count(" disabled>") == 2


def test_a_type_of_documents_can_be_chosen_from(chooser, documents):
    write(documents[1], type="invoice")

    page = chooser(more="&type=invoice")

    assert list(rows_of(page)) == [documents[1].pk]
    assert "Filtered by type" in text_of(page)


def test_each_chosen_document_gets_a_run_and_its_outcome(chooser, pressed_by, client, olga, configuration, documents):
    chosen = documents[1:]
    page = pressed_by(olga, START, **form_of(chooser(), [document.pk for document in chosen]))

    runs = list(Run.objects.order_by("pk"))
    assert [(run.input_document, run.configuration) for run in runs] == [(each, configuration) for each in chosen]
    assert {events_of(run).get().actor for run in runs} == {"olga"}
    assert page.said == ["Queued a run over each of 2 documents."]
    assert configuration.name in text_of(page)
    for document, run in zip(chosen, runs, strict=True):
        assert f'<a href="/documents/{document.pk}/">{document.pk}</a>' in text_of(page)
        assert f'<a href="/runs/{run.pk}/">run {run.pk}</a>' in text_of(page)
    path = page.request["PATH_INFO"]
    rows = list(csv.reader(io.StringIO(client.get(f"{path}?format=csv").content.decode())))
    assert [row[3] for row in rows[1:]] == ["queued", "queued"]


def test_a_form_that_is_sent_twice_starts_once(chooser, pressed_by, olga, documents):
    form = form_of(chooser())

    first, second = pressed_by(olga, START, **form), pressed_by(olga, START, **form)

    assert Run.objects.count() == 3
    assert first.context["rows"] == second.context["rows"]


def test_what_has_failed_since_and_what_does_not_fit_is_skipped_and_said(
    chooser, pressed_by, olga, documents, settings
):
    form = form_of(chooser())
    write(documents[0], status="failed")
    settings.ADE_QUEUE_SIZE = 1

    page = pressed_by(olga, START, **form)

    assert page.said == [
        "Queued a run over 1 document. Skipped 1 whose document could not be processed, 1 because the queue is full."
    ]
    assert Run.objects.get().input_document == documents[1]


def test_the_page_says_how_many_runs_fit_and_lets_people_choose_which(chooser, documents, settings):
    assert "The queue has room" not in text_of(chooser())
    settings.ADE_QUEUE_SIZE = 1

    page = chooser()

    assert "The queue has room for 1 more run." in text_of(page)
    assert len(chosen_on(page)) == 3


def test_all_or_none_are_chosen_with_one_click(chooser, documents, configuration):
    build = BuildFactory(configuration=configuration, status="ready")
    RunFactory(configuration=configuration, build=build, input_document=documents[0], status="succeeded")
    write(documents[1], status="failed")

    assert chosen_on(chooser(more="&choose=none")) == []
    assert chosen_on(chooser(more="&choose=all")) == [documents[2].pk, documents[0].pk]


@pytest.mark.parametrize("path", ["/documents/", PAGE])
def test_a_type_that_no_database_takes_is_no_error(seen_by, olga, configuration, documents, path):
    assert seen_by(olga, f"{path}?configuration={configuration.pk}&type=%00x").status_code == 200


@pytest.mark.parametrize("broken", ["once", "configuration", "id"])
def test_a_form_that_is_made_up_starts_nothing(chooser, pressed_by, olga, documents, broken):
    form = form_of(chooser()) | {broken: "x"}

    page = pressed_by(olga, START, **form)

    assert page.said == ["Nothing was started: choose a configuration and at least one document."]
    assert not Run.objects.exists()


def test_documents_and_configurations_of_others_are_out_of_reach(chooser, pressed_by, olga, documents, workspace):
    strange, watched = DocumentFactory(status="processed"), ConfigurationFactory(name="only watched")
    MembershipFactory(workspace=watched.workspace, user=olga, role="viewer")
    form = form_of(chooser())

    pressed_by(olga, START, **form | {"id": [strange.pk, documents[0].pk]})
    pressed_by(olga, START, **form | {"once": once.new_key(), "configuration": watched.pk})

    assert [run.input_document for run in Run.objects.all()] == [documents[0]]


def test_an_outcome_is_for_whoever_has_asked_for_it(chooser, pressed_by, seen_by, olga, documents):
    path = pressed_by(olga, START, **form_of(chooser())).request["PATH_INFO"]

    assert re.fullmatch(r"/documents/run/[\w-]+/", path)
    assert seen_by(olga, path).status_code == 200
    assert seen_by(UserFactory(is_superuser=True), path).status_code == 404


def test_viewers_and_strangers_run_nothing(chooser, seen_by, pressed_by, olga, ravi, zed, documents):
    form = form_of(chooser())

    for person in (ravi, zed):
        assert seen_by(person, PAGE).status_code == 403
        assert pressed_by(person, START, **form).status_code == 403
        assert "Run a configuration" not in text_of(seen_by(person, "/documents/"))
    assert f'href="{PAGE}"' in text_of(seen_by(olga, "/documents/"))
    assert not Run.objects.exists()


def test_without_a_configuration_the_page_says_how_to_get_one(seen_by, olga, workspace):
    assert "manage.py configuration import" in text_of(seen_by(olga, PAGE))


def test_the_cost_of_the_page_does_not_grow_with_the_documents(asks_at_most, olga, configuration, workspace):
    for _ in range(30):
        DocumentFactory(workspace=workspace, status="processed")

    assert len(asks_at_most(15, olga, f"{PAGE}?configuration={configuration.pk}").context["each"]) == 30
