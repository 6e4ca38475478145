import pytest
from django.test import Client
from django.urls import reverse

from builds.models import Build
from runs.models import Run
from tests.factories import BuildFactory, MembershipFactory, RunFactory, UserFactory, columns_of
from work.models import Event

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


@pytest.fixture
def run_of(configuration, build, document):
    return lambda **values: RunFactory(configuration=configuration, **values)


def actors(row):
    kind = row._meta.model_name
    return list(
        Event.objects.filter(subject_kind=kind, subject_id=row.pk).order_by("id").values_list("actor", flat=True)
    )


def test_cancel_tells_what_became_of_each(act, olga, run_of):
    elsewhere = RunFactory()
    MembershipFactory(workspace=elsewhere.workspace, user=olga, role="viewer")
    rows = [run_of(), run_of(), run_of(), run_of(status="running"), run_of(status="succeeded"), elsewhere]

    assert act(olga, "cancel", *rows) == [
        "Cancelled 3 runs, asked 1 that is running to stop."
        " Skipped 1 that had already finished, 1 that you may not change."
    ]

    statuses = [Run.objects.get(pk=row.pk).status for row in rows]
    assert statuses == ["cancelled"] * 3 + ["running", "succeeded", "queued"]
    assert actors(rows[0])[-1] == "olga"
    assert Run.objects.get(pk=rows[3].pk).cancel_requested_by == "olga"


def test_cancelling_what_has_ended_is_no_success(act, olga, run_of):
    assert act(olga, "cancel", run_of(status="cancelled")) == ["Skipped 1 that had already finished."]


def test_run_again_names_the_new_runs(act, olga, run_of):
    first, second = run_of(status="failed"), run_of(status="succeeded")
    before = columns_of(first)

    said = act(olga, "again", first, second)

    new = list(Run.objects.exclude(pk__in=[first.pk, second.pk]).order_by("id"))
    assert [run.input_document_id for run in new] == [first.input_document_id, second.input_document_id]
    assert said[0] == "Queued 2 runs again."
    assert f'<a href="/admin/runs/run/{new[0].pk}/change/">run {new[0].pk}</a>' in said[1]
    assert columns_of(first) == before
    assert actors(new[0]) == ["olga"]


def test_run_again_tells_of_a_full_queue(act, olga, run_of, settings):
    settings.ADE_QUEUE_SIZE = 1

    said = act(olga, "again", run_of(status="failed"), run_of(status="failed"), run_of(status="failed"))

    assert said[0] == "Queued 1 run again. Skipped 2 because the queue is full."
    assert Run.objects.live().count() == 1


def test_many_new_runs_are_not_all_named(act, olga, run_of, monkeypatch):
    monkeypatch.setattr("work.operations.bulk.MOST_NAMED", 1)

    said = act(olga, "again", *[run_of(status="failed") for _ in range(3)])

    assert said[1].endswith(" and 2 more.")
    assert said[1].count("<a ") == 1


def test_many_are_done_in_pieces(rehearse, confirm, said, olga, run_of, monkeypatch):
    monkeypatch.setattr("work.operations.previews.MOST_AT_ONCE", 2)
    rows = [run_of() for _ in range(3)]

    first = confirm(rehearse(olga, "cancel", *rows))

    assert said(first) == ["Cancelled 2 runs."]
    assert "2 rows were processed so far" in first.content.decode()
    assert list(Run.objects.queued()) == [rows[2]]

    last = confirm(first)

    assert said(last) == ["Cancelled 1 run."]
    assert "Go on" not in last.content.decode()
    assert not Run.objects.queued().exists()


def test_build_again(act, olga, configuration):
    failed, ready = (
        BuildFactory(configuration=configuration, status="failed"),
        BuildFactory(configuration=configuration, status="ready", fingerprint="another"),
    )

    assert act(olga, "again", failed, ready) == [
        "Queued 1 build again. Skipped 1 that has neither failed nor been cancelled."
    ]

    assert Build.objects.get(pk=failed.pk).status == "queued"
    assert actors(failed)[-1] == "olga"


def test_cancel_builds(act, olga, configuration):
    building, queued = (
        BuildFactory(configuration=configuration, status=status, fingerprint=str(status))
        for status in ("building", None)
    )

    assert act(olga, "cancel", building, queued) == ["Cancelled 1 build, asked 1 that is building to stop."]


def test_a_superuser_may_do_everything(act, run_of):
    root = UserFactory(is_staff=True, is_superuser=True)

    assert act(root, "cancel", run_of(), RunFactory()) == ["Cancelled 2 runs."]


@pytest.mark.parametrize("verb", ["cancel", "again"])
def test_a_viewer_is_offered_no_action_and_cannot_make_one_up(act, ravi, client, run_of, verb):
    run = run_of()
    before = columns_of(run)

    act(ravi, verb, run)

    page = client.get(reverse("admin:runs_run_changelist"))
    assert page.context["action_form"] is None
    assert columns_of(run) == before
    assert Run.objects.count() == 1


@pytest.mark.parametrize(("who", "status"), [("ravi", 403), ("zed", 404)])
@pytest.mark.parametrize("verb", ["cancel", "again"])
def test_buttons_are_not_for_everybody(press, run_of, request, who, status, verb):
    run = run_of()
    before = columns_of(run)

    assert press(request.getfixturevalue(who), verb, run).status_code == status

    assert columns_of(run) == before
    assert Run.objects.count() == 1


def test_a_button_does_what_the_action_does(press, olga, run_of, said):
    run = run_of()

    page = press(olga, "cancel", run, follow=True)

    assert page.redirect_chain == [(f"/admin/runs/run/{run.pk}/change/", 302)]
    assert said(page) == ["Cancelled 1 run."]
    assert Run.objects.get(pk=run.pk).status == "cancelled"


@pytest.mark.parametrize("path", ["run/{run}/cancel/", "run/{run}/again/", "run/{run}/change/", "run/"])
def test_getting_changes_nothing(client, olga, run_of, path):
    run = run_of()
    before = columns_of(run)
    client.force_login(olga)

    page = client.get(f"/admin/runs/{path.format(run=run.pk)}", {"action": "cancel", "_selected_action": run.pk})

    assert page.status_code in (405, 200, 302, 400)
    assert columns_of(run) == before
    assert Run.objects.count() == 1


def test_a_forged_form_is_refused(olga, run_of):
    run, browser = run_of(), Client(enforce_csrf_checks=True)
    browser.force_login(olga)

    assert browser.post(f"/admin/runs/run/{run.pk}/cancel/").status_code == 403
    assert browser.post("/admin/runs/run/", {"action": "cancel", "_selected_action": run.pk}).status_code == 403

    assert Run.objects.get(pk=run.pk).status == "queued"


@pytest.mark.parametrize("id", ["999999", "9" * 19, "9" * 5000, "-1", "x"])
def test_a_button_of_nothing(client, olga, id):
    client.force_login(olga)

    assert client.post(f"/admin/runs/run/{id}/cancel/").status_code in (404, 302)


@pytest.mark.parametrize(
    ("status", "labels"),
    [
        (None, ["Cancel", "Run again"]),
        ("running", ["Cancel", "Run again"]),
        ("succeeded", ["Run again"]),
        ("failed", ["Run again"]),
    ],
)
def test_the_page_offers_what_can_be_done(client, olga, run_of, status, labels):
    run = run_of(status=status)
    client.force_login(olga)

    page = client.get(reverse("admin:runs_run_change", args=[run.pk]))

    assert [label for _, label in page.context["buttons"]] == labels


def test_the_page_offers_a_viewer_nothing(client, ravi, run_of):
    run = run_of()
    client.force_login(ravi)

    page = client.get(reverse("admin:runs_run_change", args=[run.pk])).content.decode()

    assert "formaction" not in page


@pytest.mark.usefixtures("history_is_open")
def test_the_page_shows_events_the_latest_first_and_escaped(client, olga, run_of):
    run = run_of(status="succeeded")
    event = Event.objects.filter(subject_kind="run", subject_id=run.pk).latest("sequence")
    text = "<script>alert(1)</script>"
    Event.objects.filter(pk=event.pk).update(message=text, actor=text, data={text: text})
    client.force_login(olga)

    page = client.get(reverse("admin:runs_run_change", args=[run.pk]))

    assert [shown.sequence for shown in page.context["events"]] == [3, 2, 1]
    assert page.content.decode().count("&lt;script&gt;alert(1)&lt;/script&gt;") == 4
    assert text not in page.content.decode()


def test_the_page_shows_so_many_events(client, olga, run_of, monkeypatch):
    monkeypatch.setattr("work.operations.admin.EVENTS", 2)
    run = run_of(status="succeeded")
    client.force_login(olga)

    page = client.get(reverse("admin:runs_run_change", args=[run.pk]))

    assert [shown.sequence for shown in page.context["events"]] == [3, 2]
