import csv
import io
from datetime import timedelta

import pytest
from django.utils.html import escape

from console.causes import cause_of
from console.failure_groups import families_of
from console.models import FailureNote
from runs.models import Run
from tests.factories import (
    BuildFactory,
    ConfigurationFactory,
    DocumentFactory,
    MembershipFactory,
    RunFactory,
    UserFactory,
    WorkspaceFactory,
    age,
    columns_of,
    told,
    write,
)
from work.operations import once

pytestmark = [pytest.mark.edge, pytest.mark.django_db]

HOSTILE = "<script>alert(1)</script>{{7*7}}$(id)%s"
MESSAGE = "expected {} columns, found 9"
KEY = cause_of("run", "STEP_FAILED", MESSAGE.format(1)).key
PAGE = f"/failures/{KEY}/"


@pytest.fixture
def failed(configuration, build, workspace):
    """Return a function that creates a run that failed this many minutes ago."""

    def failed(message="expected 12 columns, found 9", minutes=0, failure_type="STEP_FAILED", **values):
        document = values.pop("input_document", None) or DocumentFactory(workspace=workspace)
        values = {"configuration": configuration, "build": build, "input_document": document, **values}
        run = RunFactory(**values, status="failed")
        return age(write(run, failure_type=failure_type, error_message=message), 60 * minutes)

    return failed


@pytest.fixture
def elsewhere(olga, failed):
    """A failed run in a workspace where Olga is only a viewer."""
    run = RunFactory(status="failed")
    MembershipFactory(workspace=run.workspace, user=olga, role="viewer")
    return write(run, failure_type="STEP_FAILED", error_message=MESSAGE.format(5))


def text_of(page):
    return " ".join(page.content.decode().split())


def families(page):
    return [(family.cause, family.count) for family in page.context["families"]]


def form_of(page):
    return {name: page.context[name] for name in ("once", "until")}


# The list


def test_failures_are_grouped_by_their_cause(seen_by, olga, failed):
    for columns in (12, 7, 1000):
        failed(MESSAGE.format(columns))
    failed("no text layer")

    page = seen_by(olga, "/failures/")

    assert families(page) == [("expected # columns, found #", 3), ("no text layer", 1)]
    assert f'<a href="{PAGE}">expected # columns, found #</a>' in text_of(page)
    assert "Based on 4 runs that failed or timed out." in text_of(page)


def test_what_timed_out_has_failed_too_and_what_has_not_is_no_failure(seen_by, olga, failed, configuration):
    failed("timed out after 120 s", failure_type="TIMED_OUT")
    for status in (None, "running", "succeeded", "cancelled"):
        RunFactory(configuration=configuration, status=status)

    page = seen_by(olga, "/failures/")

    assert families(page) == [("timed out after # s", 1)]
    assert "run, timed out" in text_of(page)


def test_failed_builds_have_families_of_their_own(seen_by, olga, configuration, failed):
    build = BuildFactory(configuration=configuration, status="failed", fingerprint="another")
    failed("no such package")
    write(build, error_message="no such package", failure_type="BUILD_FAILED")

    page = seen_by(olga, "/failures/")

    assert [(family.kind, family.count) for family in page.context["families"]] == [("run", 1), ("build", 1)]
    key = cause_of("build", "BUILD_FAILED", "no such package").key
    one = seen_by(olga, f"/failures/{key}/")
    assert f'<a href="/builds/{build.pk}/">{build.pk}</a>' in text_of(one)
    assert "Run all of these again" not in text_of(one)


def test_a_family_tells_when_it_was_first_and_last_seen_and_of_which_configurations(failed, olga, workspace):
    other = ConfigurationFactory(workspace=workspace, name="letters")
    runs = [
        failed(minutes=300),
        failed(minutes=5),
        failed(configuration=other, build=BuildFactory(configuration=other, status="ready"), minutes=60),
    ]

    (family,) = families_of(olga).all

    assert (family.first_at, family.last_at) == (runs[0].finished_at, runs[1].finished_at)
    assert [(name, number) for name, _, number in family.configurations] == [("invoices", 2), ("letters", 1)]
    assert family.example.id == runs[2].pk


def test_only_the_last_ones_are_looked_at_and_that_is_said(seen_by, olga, failed, monkeypatch):
    monkeypatch.setattr("console.failure_groups.MOST_RUNS", 2)
    for columns in range(3):
        failed(MESSAGE.format(columns))

    page = seen_by(olga, "/failures/")

    assert families(page) == [("expected # columns, found #", 2)]
    assert "Based on the last 2 runs that failed or timed out" in text_of(page)


def test_rows_of_others_are_not_counted(seen_by, olga, zed, failed):
    theirs = RunFactory(status="failed")
    write(theirs, failure_type="STEP_FAILED", error_message="a secret of others")
    build = BuildFactory(status="failed")
    write(build, error_message="another secret")
    failed()

    page = seen_by(olga, "/failures/")

    assert families(page) == [("expected # columns, found #", 1)]
    assert "secret" not in text_of(page)
    assert families(seen_by(zed, "/failures/")) == []


def test_the_list_can_be_narrowed(seen_by, olga, failed, configuration):
    failed()

    assert len(families(seen_by(olga, f"/failures/?configuration={configuration.pk}"))) == 1
    page = seen_by(olga, f"/failures/?configuration={configuration.pk + 1}")
    assert families(page) == []
    assert 'No failures match this filter. <a href="/failures/">Show all</a>' in text_of(page)
    assert seen_by(olga, "/failures/?configuration=x&workspace=-1").status_code == 200


def test_an_empty_list_says_so(seen_by, olga):
    assert "Failed runs and builds are grouped here by cause." in text_of(seen_by(olga, "/failures/"))


def test_whoever_is_not_signed_in_is_asked_to(client):
    for path in ("", f"{KEY}/", f"{KEY}/rehearse/", f"{KEY}/again/{'x' * 20}/"):
        assert client.get(f"/failures/{path}").url.startswith("/sign-in/")
    for path in ("note", "again"):
        assert client.post(f"{PAGE}{path}/").url.startswith("/sign-in/")


# Rising families


def rising(olga):
    return [family.is_rising for family in families_of(olga).all]


def test_a_family_rises_when_it_comes_oftener_than_before(olga, failed):
    for minutes in (5, 10, 15, 70, 300):
        failed(minutes=minutes)

    assert rising(olga) == [True]
    assert families_of(olga).rising[0].key == KEY


def test_a_family_that_comes_as_before_does_not_rise(olga, failed):
    for minutes in range(5, 300, 15):
        failed(minutes=minutes)

    (family,) = families_of(olga).all
    assert not family.is_rising
    assert family.in_the_last_hour == 4
    assert round(family.hourly_before) == 4


def test_one_or_two_are_no_rise(olga, failed):
    failed(minutes=1)
    failed(minutes=2)

    assert rising(olga) == [False]


def test_a_family_that_is_new_in_this_hour_rises(olga, failed):
    failed("something else", minutes=600)
    for minutes in (1, 2, 3):
        failed(minutes=minutes)

    assert rising(olga) == [True, False]


def test_a_family_that_rises_comes_first(seen_by, olga, failed):
    for hour in range(5):
        failed("something else", minutes=100 + 60 * hour)
    for minutes in (1, 2, 3):
        failed(minutes=minutes)

    page = seen_by(olga, "/failures/")

    assert families(page) == [("expected # columns, found #", 3), ("something else", 5)]
    assert text_of(page).count("rising") == 1


# The page of a family


def test_the_page_of_a_family_shows_its_runs_and_what_they_say(seen_by, olga, failed):
    runs = [failed(MESSAGE.format(columns)) for columns in (12, 7)]
    other = failed("no text layer")

    page = seen_by(olga, PAGE)

    assert "<h1>expected # columns, found #</h1>" in text_of(page)
    for run in runs:
        assert f'<a href="/runs/{run.pk}/">{run.pk}</a>' in text_of(page)
        assert escape(run.error_message) in text_of(page)
    assert f"/runs/{other.pk}/" not in text_of(page)
    assert "2 runs: step failed." in text_of(page)
    assert "2 in the last hour" in text_of(page)


@pytest.mark.parametrize("path", ["", "rehearse/"])
def test_a_cause_that_nobody_knows_or_that_is_of_others_is_not_there(seen_by, olga, zed, failed, path):
    failed()

    assert seen_by(zed, f"{PAGE}{path}").status_code == 404
    assert seen_by(olga, f"/failures/0123/{path}").status_code == 404


def test_hostile_messages_and_names_stay_text(seen_by, pressed_by, olga, failed, configuration):
    write(configuration, name=HOSTILE)
    failed(HOSTILE)
    key = families_of(olga).all[0].key
    pressed_by(olga, f"/failures/{key}/note/", workspace=configuration.workspace_id, text=HOSTILE)
    rehearsal = seen_by(olga, f"/failures/{key}/rehearse/")
    outcome = pressed_by(olga, f"/failures/{key}/again/", **form_of(rehearsal))

    for page in (seen_by(olga, "/failures/"), seen_by(olga, f"/failures/{key}/"), rehearsal, outcome):
        assert page.status_code == 200
        assert "<script>alert" not in page.content.decode()
        assert "7*7" in page.content.decode() or "#*#" in page.content.decode()


def test_a_message_that_is_empty_has_a_family_too(seen_by, olga, failed):
    failed("")
    key = families_of(olga).all[0].key

    assert "no message" in text_of(seen_by(olga, "/failures/"))
    assert "No message" in text_of(seen_by(olga, f"/failures/{key}/"))


@pytest.mark.parametrize("path", ["/failures/", PAGE, f"{PAGE}rehearse/"])
def test_pages_ask_little(asks_at_most, olga, failed, workspace, path):
    for columns in range(30):
        configuration = ConfigurationFactory(workspace=workspace)
        failed(MESSAGE.format(columns), configuration=configuration, build=BuildFactory(configuration=configuration))
        FailureNote.objects.get_or_create(workspace=workspace, cause=KEY, text="known", written_by="olga")

    asks_at_most(15, olga, path)


# The note


def test_a_note_is_kept_shown_changed_and_removed(seen_by, pressed_by, olga, ravi, failed, workspace):
    failed()

    page = pressed_by(olga, f"{PAGE}note/", workspace=workspace.pk, text=" The bank\r\nchanged its form. \0")
    assert page.said == ["Saved the note for Aster."]
    note = FailureNote.objects.get()
    assert (note.cause, note.text, note.written_by) == (KEY, "The bank\nchanged its form.", "olga")
    for path in ("/failures/", PAGE):
        assert "The bank changed its form." in text_of(seen_by(ravi, path))

    pressed_by(olga, f"{PAGE}note/", workspace=workspace.pk, text="Another.")
    assert FailureNote.objects.get().text == "Another."

    page = pressed_by(olga, f"{PAGE}note/", workspace=workspace.pk, text="  ")
    assert page.said == ["Removed the note for Aster."]
    assert not FailureNote.objects.exists()


def test_a_note_is_for_its_workspace(seen_by, pressed_by, olga, failed, elsewhere):
    failed()
    FailureNote.objects.create(workspace=WorkspaceFactory(), cause=KEY, text="a secret of others", written_by="x")
    FailureNote.objects.create(workspace=elsewhere.workspace, cause=KEY, text="as read there", written_by="x")

    page = seen_by(olga, PAGE)

    assert "a secret" not in text_of(page)
    assert "as read there" in text_of(page)
    # Olga is an operator in only one of the two workspaces.
    assert text_of(page).count("<textarea") == 1
    assert pressed_by(olga, f"{PAGE}note/", workspace=elsewhere.workspace_id, text="x").status_code == 403


@pytest.mark.parametrize(("who", "status"), [("ravi", 403), ("zed", 404)])
def test_a_note_is_not_written_by_everybody(pressed_by, failed, workspace, request, who, status):
    failed()

    page = pressed_by(request.getfixturevalue(who), f"{PAGE}note/", workspace=workspace.pk, text="x")

    assert page.status_code == status
    assert not FailureNote.objects.exists()


@pytest.mark.parametrize("sent", [{}, {"workspace": "x"}, {"workspace": "9" * 30}, {"text": "x"}])
def test_a_note_of_no_workspace_is_not_taken(pressed_by, olga, failed, sent):
    failed()

    assert pressed_by(olga, f"{PAGE}note/", **sent).status_code == 404


def test_a_long_note_is_cut(pressed_by, olga, failed, workspace):
    failed()

    pressed_by(olga, f"{PAGE}note/", workspace=workspace.pk, text="x" * 10_000)

    assert len(FailureNote.objects.get().text) == 5000


# Running all again


def test_a_rehearsal_tells_what_would_become_of_each_and_does_nothing(seen_by, olga, failed, elsewhere):
    twice = failed()
    failed(input_document=twice.input_document)
    failed()
    before = Run.objects.count()

    page = seen_by(olga, f"{PAGE}rehearse/")

    assert page.context["sentence"] == (
        "Of 4 runs, 2 will be queued again, 1 has a newer run, 1 cannot be changed by you."
    )
    assert "Run 2 again" in text_of(page)
    assert Run.objects.count() == before


def test_all_are_run_again_once_for_each_document(seen_by, pressed_by, client, olga, failed, elsewhere):
    first = failed()
    second, third = failed(input_document=first.input_document), failed()
    before = [columns_of(run) for run in (first, second, third, elsewhere)]

    page = pressed_by(olga, f"{PAGE}again/", **form_of(seen_by(olga, f"{PAGE}rehearse/")))

    new = list(Run.objects.queued().order_by("pk"))
    assert [run.input_document_id for run in new] == [second.input_document_id, third.input_document_id]
    assert page.said == ["Queued 2 runs again. Skipped 1 that has a newer run, 1 that you may not change."]
    assert [columns_of(run) for run in (first, second, third, elsewhere)] == before
    assert told(new[0]) == ["RUN_QUEUED"]
    for run in new:
        assert f'<a href="/runs/{run.pk}/">run {run.pk}</a>' in text_of(page)
    rows = list(csv.reader(io.StringIO(client.get(f"{page.request['PATH_INFO']}?format=csv").content.decode())))
    assert rows[0] == ["row", "id", "name", "outcome", "new"]
    assert [row[3] for row in rows[1:]] == ["not yours", "has a newer run", "queued again", "queued again"]


def test_what_was_run_again_since_is_left_out(seen_by, pressed_by, olga, failed, configuration, build):
    run = failed()
    form = form_of(seen_by(olga, f"{PAGE}rehearse/"))
    RunFactory(configuration=configuration, build=build, input_document=run.input_document, status="succeeded")

    assert pressed_by(olga, f"{PAGE}again/", **form).said == ["Skipped 1 that has a newer run."]
    assert "Run 1 again" not in text_of(seen_by(olga, f"{PAGE}rehearse/"))


def test_a_form_that_is_sent_twice_does_it_once(seen_by, pressed_by, olga, failed):
    failed()
    form = form_of(seen_by(olga, f"{PAGE}rehearse/"))

    first, second = pressed_by(olga, f"{PAGE}again/", **form), pressed_by(olga, f"{PAGE}again/", **form)

    assert Run.objects.queued().count() == 1
    assert first.context["rows"] == second.context["rows"]


def test_what_fails_after_the_rehearsal_is_left_alone(seen_by, pressed_by, olga, failed):
    failed()
    form = form_of(seen_by(olga, f"{PAGE}rehearse/"))
    later = failed()

    pressed_by(olga, f"{PAGE}again/", **form)

    assert later.input_document_id not in Run.objects.queued().values_list("input_document_id", flat=True)


def test_a_full_queue_is_foreseen_and_told(seen_by, pressed_by, olga, failed, settings):
    failed()
    failed()
    settings.ADE_QUEUE_SIZE = 1

    page = seen_by(olga, f"{PAGE}rehearse/")
    after = pressed_by(olga, f"{PAGE}again/", **form_of(page))

    assert "1 will not fit in the queue" in page.context["sentence"]
    assert after.said == ["Queued 1 run again. Skipped 1 because the queue is full."]


@pytest.mark.parametrize(("who", "status"), [("ravi", 403), ("zed", 404)])
def test_not_everybody_runs_them_again(seen_by, pressed_by, failed, request, who, status):
    failed()
    user = request.getfixturevalue(who)

    assert seen_by(user, f"{PAGE}rehearse/").status_code == status
    assert pressed_by(user, f"{PAGE}again/", once=once.new_key(), until=10**9).status_code == status

    assert not Run.objects.queued().exists()


def test_a_viewer_sees_no_button(seen_by, ravi, failed):
    failed()

    text = text_of(seen_by(ravi, PAGE))

    assert "Run all of these again" not in text
    assert "<textarea" not in text


@pytest.mark.parametrize("sent", [{}, {"once": "x"}, {"once": "x" * 20}, {"once": "x" * 20, "until": "x"}])
def test_a_form_that_is_made_up_leads_to_the_rehearsal(pressed_by, olga, failed, sent):
    failed()

    page = pressed_by(olga, f"{PAGE}again/", **sent)

    assert page.context["preview"]
    assert not Run.objects.queued().exists()


def test_an_outcome_is_for_whoever_has_asked_for_it(seen_by, pressed_by, olga, failed):
    failed()
    page = pressed_by(olga, f"{PAGE}again/", **form_of(seen_by(olga, f"{PAGE}rehearse/")))
    path, root = page.request["PATH_INFO"], UserFactory(is_superuser=True)

    assert seen_by(olga, path).status_code == 200
    assert seen_by(root, path).status_code == 404
    assert seen_by(olga, path.replace(KEY, "0123")).status_code == 404
    assert seen_by(olga, f"{PAGE}again/nothing-at-all-of-that/").status_code == 404


@pytest.mark.parametrize("path", ["note/", "again/"])
def test_getting_changes_nothing(seen_by, olga, failed, path):
    failed()

    assert seen_by(olga, f"{PAGE}{path}").status_code == 405

    assert Run.objects.count() == 1


def test_a_family_knows_its_hours(failed, olga):
    failed(minutes=200)

    (family,) = families_of(olga).all

    assert family.now - family.since >= timedelta(minutes=199)
