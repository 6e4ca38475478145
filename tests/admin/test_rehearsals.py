import csv
import io

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test.utils import CaptureQueriesContext

from api.models import AuditEntry
from runs import lifecycle
from runs.models import Run
from tests.factories import (
    BuildFactory,
    DocumentFactory,
    FeedFactory,
    MembershipFactory,
    RunFactory,
    UserFactory,
    bring_to,
    columns_of,
    events_of,
    told,
    write,
)
from work import clock
from work.operations import once

pytestmark = [pytest.mark.edge, pytest.mark.django_db]

LIST = "/admin/runs/run/"
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def run_of(configuration, build):
    return lambda **values: RunFactory(configuration=configuration, **values)


@pytest.fixture
def elsewhere(olga):
    run = RunFactory()
    MembershipFactory(workspace=run.workspace, user=olga, role="viewer")
    return run


def shown(page):
    return page.content.decode()


def outcome_of(page):
    return page.redirect_chain[-1][0]


def table_of(client, page):
    return list(csv.reader(io.StringIO(client.get(f"{outcome_of(page)}csv/").content.decode())))


# The preview


def test_a_rehearsal_tells_what_would_become_of_each_and_does_nothing(rehearse, olga, run_of, elsewhere):
    rows = [run_of(), run_of(), run_of(status="running"), run_of(status="succeeded"), elsewhere]
    before = [columns_of(row) for row in rows]

    page = rehearse(olga, "cancel", *rows)

    assert page.context["said"] == (
        "Of 5 selected, 2 will be cancelled, 1 will be asked to stop, 1 has already finished,"
        " 1 cannot be changed by you."
    )
    assert [(row.pk, said) for row, said, _ in page.context["each"]] == [
        (elsewhere.pk, "cannot be changed by you"),
        *((row.pk, "will be cancelled") for row in rows[:2]),
        (rows[2].pk, "will be asked to stop"),
        (rows[3].pk, "has already finished"),
    ]
    assert "Nothing has been done yet." in shown(page)
    assert [columns_of(row) for row in rows] == before


def test_what_would_do_nothing_has_no_button(rehearse, olga, run_of):
    page = rehearse(olga, "cancel", run_of(status="failed"))

    assert page.context["said"] == "Of 1 selected, 1 has already finished."
    assert 'name="once"' not in shown(page)


def test_the_rehearsal_of_run_again_counts_the_places_of_the_queue(rehearse, olga, run_of, settings):
    rows = [run_of(status="failed") for _ in range(3)]
    write(rows[0].input_document, status="processed", purged_at=clock.now(), file="")
    settings.ADE_QUEUE_SIZE = 1

    said = rehearse(olga, "again", *rows).context["said"]

    assert said == (
        "Of 3 selected, 1 will be queued again, 1 belongs to a purged document, 1 will not fit in the queue."
    )


@pytest.mark.parametrize("verb", ["cancel", "again"])
@pytest.mark.parametrize("status", [None, "running", "succeeded", "failed", "cancelled"])
def test_what_is_foreseen_of_a_run_is_what_becomes_of_it(rehearse, confirm, olga, run_of, status, verb):
    page = rehearse(olga, verb, run_of(status=status))
    foreseen = list(page.context["each"])

    after = confirm(page, once=once.new_key(), until=10**9)

    assert len(foreseen) == 1
    assert (
        after.context["rows"][0][2]
        in {
            "will be cancelled": {"cancelled"},
            "will be asked to stop": {"asked to stop"},
            "will be queued again": {"queued again"},
            "has already finished": {"had finished already"},
        }[foreseen[0][1]]
    )


@pytest.mark.parametrize("verb", ["cancel", "again"])
@pytest.mark.parametrize("status", [None, "building", "ready", "failed", "cancelled"])
def test_what_is_foreseen_of_a_build_is_what_becomes_of_it(rehearse, confirm, olga, configuration, status, verb):
    page = rehearse(olga, verb, BuildFactory(configuration=configuration, status=status))
    ((_, foreseen, _),) = page.context["each"]

    after = confirm(page, once=once.new_key(), until=10**9)

    assert (
        after.context["rows"][0][2]
        in {
            "will be cancelled": {"cancelled"},
            "will be asked to stop": {"asked to stop"},
            "will be queued again": {"queued again"},
            "has already finished": {"had finished already"},
            "has neither failed nor been cancelled": {"has not failed"},
        }[foreseen]
    )


def test_a_rehearsal_asks_little_of_few_and_of_many(rehearse, olga, run_of):
    rows = [run_of() for _ in range(30)]
    rehearse(olga, "cancel", rows[0])

    def asked(*rows):
        with CaptureQueriesContext(connection) as queries:
            rehearse(olga, "cancel", *rows)
        return len(queries)

    # Ten of these are for signing in.
    assert asked(*rows) == asked(rows[0]) <= 35


def test_of_more_than_are_looked_at_the_oldest_are_told(rehearse, confirm, olga, run_of, monkeypatch):
    monkeypatch.setattr("work.operations.previews.MOST_PREVIEWED", 2)
    rows = [run_of() for _ in range(3)]

    page = rehearse(olga, "cancel", *rows)

    assert page.context["said"] == "Of 2 oldest matches, 2 will be cancelled."
    assert "More rows match" in shown(page)
    confirm(page)
    assert not Run.objects.queued().exists()


# The reason


def test_the_reason_goes_into_the_history(rehearse, confirm, olga, run_of):
    queued, running = run_of(), run_of(status="running")

    page = confirm(rehearse(olga, "cancel", queued, running), reason=f" too many,\n{HOSTILE}\0 ")

    for run in (queued, running):
        assert events_of(run).last().message == f"too many, {HOSTILE}"
        assert events_of(run).last().actor == "olga"
    assert "Reason: too many, &lt;script&gt;" in shown(page)


def test_the_reason_of_a_build_and_of_a_feed_is_kept_too(rehearse, confirm, olga, configuration):
    editor = UserFactory(is_staff=True)
    editor.user_permissions.set(Permission.objects.filter(codename="change_feedsource"))
    build, feed = BuildFactory(configuration=configuration), FeedFactory()

    confirm(rehearse(olga, "cancel", build), reason="wrong lock")
    confirm(rehearse(editor, "pause", feed), reason="too loud")

    assert events_of(build).last().message == "wrong lock"
    assert events_of(feed).last().message == "too loud"


def test_nobody_is_asked_for_a_reason_that_is_kept_nowhere(rehearse, olga, run_of):
    assert 'name="reason"' not in shown(rehearse(olga, "again", run_of(status="failed")))


# All rows that match the filter


def test_all_that_match_the_filter_are_done_not_only_those_of_the_page(rehearse, confirm, said, olga, run_of):
    rows = [run_of() for _ in range(60)]
    ended, running = run_of(status="failed"), run_of(status="running")

    page = rehearse(olga, "cancel", rows[-1], query="?outcome=queued", select_across="1")
    assert page.context["said"] == "Of 60 selected, 60 will be cancelled."
    after = confirm(page)

    assert said(after) == ["Cancelled 60 runs."]
    assert "Back to the list" in shown(after)
    assert 'href="/admin/runs/run/?outcome=queued"' in shown(after)
    assert not Run.objects.queued().exists()
    assert [Run.objects.get(pk=run.pk).cancel_requested_at for run in (ended, running)] == [None, None]


def test_what_the_act_makes_is_not_done_too(rehearse, confirm, said, olga, run_of, monkeypatch):
    monkeypatch.setattr("work.operations.previews.MOST_AT_ONCE", 2)
    rows = [run_of(status="failed") for _ in range(3)]

    page = confirm(rehearse(olga, "again", rows[0], select_across="1"))
    assert page.context["has_more"]
    page = confirm(page)

    assert said(page)[0] == "Queued 1 run again."
    assert not page.context["has_more"]
    assert "the last of 3" in shown(page)
    assert Run.objects.count() == 6
    assert {run.input_document_id for run in Run.objects.queued()} == {run.input_document_id for run in rows}


def test_what_comes_after_the_rehearsal_is_left_alone(rehearse, confirm, said, olga, run_of):
    page = rehearse(olga, "cancel", run_of(), select_across="1")
    later = run_of()

    assert said(confirm(page)) == ["Cancelled 1 run."]

    assert Run.objects.get(pk=later.pk).status == "queued"


def test_rows_of_others_are_passed_over_by_all_that_match(rehearse, confirm, said, olga, run_of, elsewhere):
    strange = RunFactory()

    page = confirm(rehearse(olga, "cancel", run_of(), select_across="1"))

    assert said(page) == ["Cancelled 1 run. Skipped 1 that you may not change."]
    assert {Run.objects.get(pk=run.pk).status for run in (elsewhere, strange)} == {"queued"}


# Confirmation


def test_a_form_that_is_sent_twice_does_it_once(rehearse, confirm, said, olga, run_of):
    page = rehearse(olga, "again", run_of(status="failed"))

    first, second = confirm(page), confirm(page)

    assert Run.objects.count() == 2
    assert outcome_of(first) == outcome_of(second)
    assert first.context["rows"] == second.context["rows"]
    assert said(second) == []


def test_what_was_decided_meanwhile_is_told_as_it_is(rehearse, confirm, said, olga, run_of):
    run = run_of()
    page = rehearse(olga, "cancel", run)
    lifecycle.cancel(run, actor="ravi")

    assert said(confirm(page)) == ["Skipped 1 that had already finished."]

    assert told(run).count("RUN_CANCELLED") == 1


def test_what_was_chosen_is_done_though_the_filter_does_not_match_it_any_more(
    rehearse, confirm, said, client, olga, run_of
):
    waits, begins = run_of(), run_of()
    page = rehearse(olga, "cancel", waits, begins, query="?outcome=queued")
    bring_to(begins, "running")

    after = confirm(page)

    assert said(after) == ["Cancelled 1 run, asked 1 that is running to stop."]
    assert [row[1] for row in table_of(client, after)[1:]] == [str(waits.pk), str(begins.pk)]
    begins.refresh_from_db()
    assert begins.cancel_requested_by == "olga"


def test_what_was_chosen_and_is_gone_is_told_of(rehearse, confirm, said, client, olga, run_of):
    stays, goes = run_of(), run_of()
    page = rehearse(olga, "cancel", stays, goes)
    Run.objects.filter(pk=goes.pk).delete()

    after = confirm(page)

    assert said(after) == ["Cancelled 1 run. Skipped 1 that no longer exists."]
    assert [row[3] for row in table_of(client, after)[1:]] == ["cancelled", "not found"]


def test_of_all_that_match_what_matches_no_more_is_left_alone_and_told_of(rehearse, confirm, said, olga, run_of):
    waits, begins = run_of(), run_of()
    page = rehearse(olga, "cancel", waits, query="?outcome=queued", select_across="1")
    bring_to(begins, "running")

    after = confirm(page)

    assert said(after) == ["Cancelled 1 run."]
    assert "1 of the 2 rows in the preview no longer matched the filter and was skipped" in shown(after)
    begins.refresh_from_db()
    assert begins.cancel_requested_at is None


def test_the_outcome_tells_of_each_row(rehearse, confirm, client, olga, run_of):
    page = confirm(rehearse(olga, "again", run_of(status="failed")))

    new = Run.objects.latest("pk")
    assert f'<td><a href="/admin/runs/run/{new.pk}/change/">run {new.pk}</a></td>' in shown(page)
    # The page stays the same when it is loaded again.
    assert client.get(outcome_of(page)).context["rows"] == page.context["rows"]


def test_an_act_that_breaks_down_tells_how_far_it_came(rehearse, confirm, said, client, olga, run_of, monkeypatch):
    rows, cancel = [run_of() for _ in range(3)], lifecycle.cancel

    def broken(run, **told):
        if run.pk == rows[1].pk:
            raise ZeroDivisionError
        return cancel(run, **told)

    page = rehearse(olga, "cancel", *rows)
    with monkeypatch.context() as patch:
        patch.setattr("runs.lifecycle.cancel", broken)
        with pytest.raises(ZeroDivisionError):
            confirm(page)

    after = confirm(page)
    assert [row[0] for row in after.context["rows"]] == [rows[0].pk]
    assert "Continue with" in shown(after)
    assert said(confirm(after)) == ["Cancelled 2 runs."]


def test_what_is_being_done_says_so(client, olga):
    client.force_login(olga)
    key = once.new_key()
    once.begin(olga, key)

    page = client.get(f"{LIST}outcome/{key}/")

    assert "The action is running." in shown(page)
    assert client.get(f"{LIST}outcome/{key}/csv/").status_code == 200


def test_an_outcome_is_for_whoever_has_sent_it(rehearse, confirm, client, olga, ravi, run_of):
    path = outcome_of(confirm(rehearse(olga, "cancel", run_of())))

    for ending in ("", "csv/"):
        client.force_login(ravi)
        assert client.get(f"{path}{ending}").status_code == 404
        client.force_login(olga)
        assert client.get(f"{path.replace('runs/run', 'builds/build')}{ending}").status_code == 404
        assert client.get(f"{path}{ending}").status_code == 200
        assert client.get(f"{LIST}outcome/nothing/{ending}").status_code == 404


@pytest.mark.parametrize("until", ["", "x", "-1", "9" * 19, "9" * 5000])
def test_a_form_that_is_made_up_is_rehearsed(rehearse, confirm, olga, run_of, until):
    page = rehearse(olga, "cancel", run_of())

    again = confirm(page, until=until)

    assert again.context["said"] == "Of 1 selected, 1 will be cancelled."
    assert Run.objects.queued().count() == 1


@pytest.mark.parametrize("key", ["", "x", "../" * 8, "x" * 65, "x" * 5000])
def test_a_key_that_is_made_up_does_nothing(rehearse, confirm, olga, run_of, key):
    page = rehearse(olga, "cancel", run_of())

    assert "said" in confirm(page, once=key).context

    assert Run.objects.queued().count() == 1


def test_a_viewer_cannot_send_the_form_of_somebody_else(rehearse, confirm, client, olga, ravi, run_of):
    page = rehearse(olga, "cancel", run_of())
    client.force_login(ravi)

    confirm(page)

    assert Run.objects.queued().count() == 1


def test_names_stay_text(rehearse, confirm, olga, configuration):
    write(configuration, name=HOSTILE)
    build = BuildFactory(configuration=configuration)

    page = rehearse(olga, "cancel", build)
    after = confirm(page, reason=HOSTILE)

    for each in (page, after):
        assert "&lt;script&gt;alert(1)" in shown(each)
        assert HOSTILE not in shown(each)


# The table


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "＝1+1"])
def test_the_table_has_no_formulas(rehearse, confirm, client, olga, workspace, name):
    document = DocumentFactory(workspace=workspace, name=name, status="processed")

    page = confirm(rehearse(olga, "reprocess", document))

    assert table_of(client, page)[1] == ["document", str(document.pk), f"'{name}", "queued again", ""]


def test_all_rows_are_named_in_the_table(rehearse, confirm, client, olga, run_of):
    rows = [run_of(status=status) for status in (None, "failed")]

    page = confirm(rehearse(olga, "cancel", *rows))

    assert table_of(client, page) == [
        ["row", "id", "name", "outcome", "new"],
        ["run", str(rows[0].pk), f"run {rows[0].pk}", "cancelled", ""],
        ["run", str(rows[1].pk), f"run {rows[1].pk}", "had finished already", ""],
    ]
    answer = client.get(f"{outcome_of(page)}csv/")
    assert answer["Content-Disposition"] == 'attachment; filename="run-cancel.csv"'
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert "no-store" in answer["Cache-Control"]


# The audit log


def test_the_audit_names_the_row_and_its_workspace(rehearse, confirm, olga, workspace, run_of):
    run = run_of()

    confirm(rehearse(olga, "cancel", run))

    entries = list(AuditEntry.objects.filter(subject_kind="run").order_by("pk"))
    assert [(entry.subject_kind, entry.subject_id, entry.workspace) for entry in entries] == [
        ("run", run.pk, workspace)
    ] * 2
    assert [entry.answered for entry in entries] == [200, 302]


def test_the_audit_names_no_single_row_of_all_that_match(rehearse, confirm, olga, run_of):
    run_of()

    confirm(rehearse(olga, "cancel", run_of(), select_across="1"))

    assert [entry.subject_id for entry in AuditEntry.objects.filter(subject_kind="run")] == [None, None]
