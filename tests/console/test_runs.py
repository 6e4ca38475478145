from datetime import timedelta

import pytest
from django.utils.html import escape

from runs import queue
from runs.models import Run
from tests.factories import (
    ArtifactFactory,
    BuildFactory,
    ConfigurationFactory,
    DocumentFactory,
    MembershipFactory,
    RunFactory,
    RunFieldFactory,
    events_of,
    write,
)
from work import clock, lifecycle
from work.work_types import work_type_named

pytestmark = [pytest.mark.edge, pytest.mark.django_db]

HOSTILE = "<script>alert(1)</script>{{7*7}}$(id)%s"


@pytest.fixture
def run_of(configuration, build, workspace):
    def run_of(name="invoice.pdf", **values):
        document = values.pop("input_document", None) or DocumentFactory(
            workspace=workspace, name=name, status="processed"
        )
        return RunFactory(**{"configuration": configuration, "build": build, "input_document": document, **values})

    return run_of


def text_of(page):
    return " ".join(page.content.decode().split())


def numbers_of(page):
    return [run.pk for run in page.context["slice"].rows]


# The list


def test_the_newest_run_comes_first(seen_by, olga, run_of):
    first, second = run_of(), run_of()

    page = seen_by(olga, "/runs/")

    assert page.status_code == 200
    assert numbers_of(page) == [second.pk, first.pk]


def test_a_list_goes_on_behind_the_last_row_of_a_page(seen_by, olga, run_of, monkeypatch):
    monkeypatch.setattr("console.lists.ROWS", 2)
    runs = [run_of().pk for _ in range(5)]

    first = seen_by(olga, "/runs/")
    second = seen_by(olga, f"/runs/{first.context['slice'].older}")
    last = seen_by(olga, f"/runs/{second.context['slice'].older}")

    assert [*numbers_of(first), *numbers_of(second), *numbers_of(last)] == runs[::-1]
    assert not last.context["slice"].older
    assert numbers_of(seen_by(olga, f"/runs/{last.context['slice'].newer}")) == numbers_of(first)


@pytest.mark.parametrize("outcome", Run.OUTCOMES)
def test_a_list_has_the_runs_of_one_outcome(seen_by, olga, run_of, outcome):
    runs = {status: run_of(status=status) for status in Run.Status.values}
    runs["timed_out"] = write(run_of(status="failed"), failure_type="TIMED_OUT")

    page = seen_by(olga, f"/runs/?outcome={outcome}")

    assert numbers_of(page) == [runs[outcome].pk]


@pytest.mark.parametrize(
    "asked", ["outcome=lost", "before=x", "workspace=-1", "before=99999999999999999999999", "page=2"]
)
def test_what_no_filter_knows_is_passed_over(seen_by, olga, run_of, asked):
    run = run_of()

    assert numbers_of(seen_by(olga, f"/runs/?{asked}")) == [run.pk]


def test_a_list_is_narrowed_to_one_document(seen_by, olga, run_of):
    run = run_of()
    run_of("other.pdf")

    page = seen_by(olga, f"/runs/?document={run.input_document_id}")

    assert numbers_of(page) == [run.pk]
    assert "Filtered by document <strong>invoice.pdf</strong>" in text_of(page)


def test_a_list_has_nothing_of_others(seen_by, olga, run_of):
    run, others = run_of(), RunFactory()

    page = seen_by(olga, "/runs/")
    narrowed = seen_by(olga, f"/runs/?workspace={others.workspace_id}")

    assert numbers_of(page) == [run.pk]
    assert numbers_of(narrowed) == []
    assert others.workspace.name not in text_of(narrowed)


def test_an_empty_list_says_how_to_begin(seen_by, olga):
    assert "No runs yet." in text_of(seen_by(olga, "/runs/"))
    assert "No runs match this filter." in text_of(seen_by(olga, "/runs/?outcome=failed"))


def test_a_list_asks_little_however_long_it_is(asks_at_most, olga, run_of):
    for _ in range(12):
        run_of()

    asks_at_most(15, olga, "/runs/")


# The page of a run


def test_a_page_says_what_has_become_of_a_run(seen_by, ravi, run_of):
    run = run_of(status="failed")

    page = seen_by(ravi, f"/runs/{run.pk}/")

    assert f"Run {run.pk}" in page.context["title"]
    assert "the engine failed" in text_of(page)
    assert "before it started." in text_of(page)
    assert "Cancel…" not in text_of(page)
    assert "Run again…" not in text_of(page)


def test_a_page_has_what_a_run_found_and_made(seen_by, olga, run_of):
    run = run_of(status="succeeded")
    RunFieldFactory(run=run, name="total", value="324.00", confidence=0.98, page=1)
    artifact = ArtifactFactory(run=run, name="invoice.json")

    page = text_of(seen_by(olga, f"/runs/{run.pk}/"))

    assert "324.00" in page
    assert "98%" in page
    assert f'href="/artifacts/{artifact.pk}/download/"' in page


def test_long_and_nested_values_can_be_seen_whole(seen_by, olga, run_of):
    run = run_of(status="succeeded")
    RunFieldFactory(run=run, name="text", value="x" * 20_000)
    RunFieldFactory(run=run, name="lines", value={"n": 1, "who": [HOSTILE, "\u202e"]})
    RunFieldFactory(run=run, name="none", value=None)

    text, lines, none = (page := seen_by(olga, f"/runs/{run.pk}/")).context["fields"]

    assert (len(text.short), len(text.whole)) == (301, 10_001)
    assert lines.short.startswith('{"n": 1, "who": ["<script>')
    assert lines.whole == f'{{\n  "n": 1,\n  "who": [\n    "{HOSTILE}",\n    "\\u202e"\n  ]\n}}'
    assert (none.short, none.whole) == ("–", "")
    assert HOSTILE not in page.content.decode()


@pytest.fixture
def placed(run_of, workspace):
    """A run with fields on two pages of a PDF."""
    document = DocumentFactory(workspace=workspace, content_type="application/pdf", file="documents/x", pages=9)
    run = run_of(status="succeeded", input_document=document)
    for name, page, box in (("date", 2, [0.1, 0.1, 0.2, 0.2]), ("total", 5, [0, 0, 1, 1]), ("odd", 7, ["x"])):
        RunFieldFactory(run=run, name=name, page=page, box=box, confidence=0.3)
    return run


def test_a_page_shows_where_fields_were_found(seen_by, ravi, placed):
    page = seen_by(ravi, f"/runs/{placed.pk}/")

    sheet = page.context["sheet"]
    assert (sheet.number, sheet.pages, [line.name for line in sheet.lines]) == (2, [2, 5], ["date"])
    assert f'src="/documents/{placed.input_document_id}/pages/2.png"' in text_of(page)
    assert 'href="?page=5#box-2"' in text_of(page)
    assert '<details class="text" id="sheet">' in text_of(page)


def test_another_page_is_shown_to_whoever_asks(seen_by, ravi, placed):
    page = seen_by(ravi, f"/runs/{placed.pk}/?page=5")

    assert [line.name for line in page.context["sheet"].lines] == ["total"]
    assert '<details class="text" id="sheet" open>' in text_of(page)
    assert seen_by(ravi, f"/runs/{placed.pk}/?page=7").context["sheet"].number == 2


def test_what_has_no_looks_shows_no_page(seen_by, ravi, placed):
    write(placed.input_document, content_type="text/plain")

    page = seen_by(ravi, f"/runs/{placed.pk}/")

    assert page.context["sheet"] is None
    assert "Where it found them" not in text_of(page)


def test_of_a_document_that_was_purged_the_page_says_so(seen_by, ravi, placed):
    write(placed.input_document, purged_at=clock.now(), file="", status="processed")

    page = text_of(seen_by(ravi, f"/runs/{placed.pk}/"))

    assert "No preview.</strong> The document was purged on " in page
    assert "/pages/2.png" not in page


def test_a_page_says_why_a_run_waits(seen_by, olga, run_of):
    run = run_of()
    queue.pause(actor="ravi", reason="the disk is being changed")

    page = seen_by(olga, f"/runs/{run.pk}/")

    assert {gate.name for gate in page.context["explanation"].holding} == {"paused", "worker"}
    assert "the disk is being changed" in text_of(page)


@pytest.mark.usefixtures("history_is_open")
def test_a_page_has_the_steps_of_a_run_with_their_attempts(seen_by, olga, run_of):
    run = run_of(status="running")
    now = clock.now()
    states = work_type_named("run").states
    for kind, step, seconds in (
        ("STEP_STARTED", "read", 1),
        ("STEP_RETRIED", "read", 2),
        ("STEP_SUCCEEDED", "read", 4),
        ("STEP_STARTED", "sum", 5),
    ):
        lifecycle.record(states, run.pk, kind, data={"step": step})
        last = events_of(run).last()
        type(last).objects.filter(pk=last.pk).update(at=now + timedelta(seconds=seconds))
    write(run, started_at=now + timedelta(seconds=1), created_at=now)

    parts = seen_by(olga, f"/runs/{run.pk}/").context["timeline"]

    bars = [(row.bar.name, row.bar.tone, row.bar.note, row.bar.is_open) for row in parts[1].rows]
    assert bars == [
        ("read", "warn", "", False),
        ("read", "good", "attempt 2", False),
        ("sum", "busy", "", True),
    ]
    assert parts[0].rows[0].bar.seconds == pytest.approx(1, abs=0.01)


def test_a_page_of_others_is_not_there(seen_by, olga, zed, run_of):
    others = RunFactory()

    assert seen_by(olga, f"/runs/{others.pk}/").status_code == 404
    assert seen_by(zed, f"/runs/{run_of().pk}/").status_code == 404
    assert seen_by(olga, f"/runs/{others.pk}/log/").status_code == 404


def test_whoever_is_not_signed_in_is_asked_to(client, run_of):
    page = client.get(f"/runs/{run_of().pk}/")

    assert page.status_code == 302
    assert page.url.startswith("/sign-in/?next=/runs/")


@pytest.mark.parametrize("status", Run.Status.values)
def test_a_page_asks_little(asks_at_most, olga, run_of, status):
    run = run_of(status=status)
    for name in ("a", "b", "c"):
        RunFieldFactory(run=run, name=name)

    asks_at_most(15, olga, f"/runs/{run.pk}/")


def test_what_strangers_wrote_stays_text(seen_by, olga, run_of):
    run = run_of(HOSTILE, status="failed")
    write(run, error_message=HOSTILE)
    lifecycle.record(
        work_type_named("run").states, run.pk, "LOG", message=f"{HOSTILE}\x1b[31m", data={"stream": HOSTILE}
    )
    RunFieldFactory(run=run, name=HOSTILE, value=HOSTILE)

    for path in ("/runs/", f"/runs/{run.pk}/", f"/runs/{run.pk}/log/"):
        page = seen_by(olga, path).content.decode()
        assert HOSTILE not in page
        assert "\x1b" not in page
        assert escape(HOSTILE) in page


# The log


@pytest.fixture
def printed(run_of):
    run = run_of(status="running")
    for text in ("reading", "found 12 words", "found 3 totals"):
        lifecycle.record(work_type_named("run").states, run.pk, "LOG", message=text, data={"stream": "stdout"})
    return run


def test_a_log_is_searched(seen_by, olga, printed):
    page = seen_by(olga, f"/runs/{printed.pk}/log/?q=FOUND")

    assert [line.text for line in page.context["log"].lines] == ["found 12 words", "found 3 totals"]


def test_a_log_is_downloaded(seen_by, olga, printed):
    page = seen_by(olga, f"/runs/{printed.pk}/log/?format=text")

    assert page.content.decode() == "reading\nfound 12 words\nfound 3 totals\n"
    assert page["Content-Disposition"] == f'attachment; filename="run-{printed.pk}.log"'


def test_a_page_shows_the_end_of_a_long_log(seen_by, olga, printed, monkeypatch):
    monkeypatch.setattr("console.logs.last_lines.__defaults__", (2,))

    page = seen_by(olga, f"/runs/{printed.pk}/")

    assert [line.text for line in page.context["log"].lines] == ["found 12 words", "found 3 totals"]
    assert "The last 2 lines" in text_of(page)


# Cancel and run again


def test_olga_cancels_what_is_queued(pressed_by, olga, run_of):
    run = run_of()

    page = pressed_by(olga, f"/runs/{run.pk}/cancel/", reason="sent  twice\n")

    assert page.said == ["Cancelled 1 run."]
    last = events_of(run).last()
    assert (last.kind, last.actor, last.message) == ("RUN_CANCELLED", "olga", "sent twice")


def test_what_is_running_is_asked_to_stop(pressed_by, olga, run_of):
    run = run_of(status="running")

    page = pressed_by(olga, f"/runs/{run.pk}/cancel/")

    assert page.said == ["Asked 1 that is running to stop."]
    run.refresh_from_db()
    assert run.cancel_requested_by == "olga"


def test_what_has_ended_meanwhile_stays_as_it_is(pressed_by, olga, run_of):
    run = run_of(status="succeeded")

    page = pressed_by(olga, f"/runs/{run.pk}/cancel/")

    assert page.said == ["Skipped 1 that had already finished."]
    assert Run.objects.get(pk=run.pk).status == "succeeded"


def test_olga_runs_again_and_comes_to_the_new_run(pressed_by, olga, run_of):
    run = run_of(status="failed")

    page = pressed_by(olga, f"/runs/{run.pk}/again/")

    new = Run.objects.exclude(pk=run.pk).get()
    assert page.redirect_chain == [(f"/runs/{new.pk}/", 302)]
    assert page.said == [f"Started run {new.pk}, a repeat of run {run.pk}."]


def test_a_full_queue_says_so(pressed_by, olga, run_of, settings):
    settings.ADE_QUEUE_SIZE = 1
    run_of("waits.pdf")
    run = run_of(status="failed")

    page = pressed_by(olga, f"/runs/{run.pk}/again/")

    assert page.said[0].startswith("The queue is full: it has 1 of 1 runs")
    assert Run.objects.count() == 2


@pytest.mark.parametrize("verb", ["cancel", "again"])
def test_a_button_is_for_operators_of_that_workspace(client, seen_by, pressed_by, olga, ravi, zed, run_of, verb):
    run = run_of()
    elsewhere = RunFactory(build=BuildFactory())
    MembershipFactory(workspace=elsewhere.workspace, user=olga, role="viewer")
    path = f"/runs/{run.pk}/{verb}/"

    assert pressed_by(ravi, path).status_code == 403
    assert pressed_by(zed, path).status_code == 404
    assert pressed_by(olga, f"/runs/{elsewhere.pk}/{verb}/").status_code == 403
    assert seen_by(olga, path).status_code == 405
    client.logout()
    assert client.post(path).url.startswith("/sign-in/")
    assert Run.objects.filter(status="queued").count() == Run.objects.count() == 2


@pytest.mark.parametrize("back", ["https://example.com/", "//example.com/", "javascript:alert(1)", "/\\example.com"])
def test_nobody_is_sent_elsewhere(pressed_by, olga, run_of, back):
    run = run_of()

    page = pressed_by(olga, f"/runs/{run.pk}/cancel/", back=back)

    assert page.redirect_chain == [(f"/runs/{run.pk}/", 302)]


def test_a_button_leads_back_to_where_it_was(pressed_by, olga, run_of):
    page = pressed_by(olga, f"/runs/{run_of().pk}/cancel/", back="/runs/?outcome=queued")

    assert page.redirect_chain == [("/runs/?outcome=queued", 302)]


# Running a configuration over a document


def test_an_operator_runs_a_configuration_over_a_document_and_sees_the_run(pressed_by, olga, workspace, configuration):
    document = DocumentFactory(workspace=workspace, status="processed")

    pressed = pressed_by(olga, f"/documents/{document.pk}/run/", configuration=configuration.pk)

    run = Run.objects.get()
    assert pressed.said == [f"Started run {run.pk} of {configuration.name}."]
    assert pressed.redirect_chain[-1][0] == f"/runs/{run.pk}/"
    assert (run.input_document, run.configuration, run.waits_for_processing) == (document, configuration, True)
    assert events_of(run).get().actor == "olga"


def test_the_form_offers_the_configurations_of_the_workspace_and_chooses_the_latest(seen_by, olga, run_of, workspace):
    ConfigurationFactory(workspace=workspace, name="another")
    ConfigurationFactory(name="of strangers")
    run = run_of(configuration=ConfigurationFactory(workspace=workspace, name="the latest"))

    text = text_of(seen_by(olga, f"/documents/{run.input_document_id}/"))

    assert f'<option value="{run.configuration_id}" selected>the latest</option>' in text
    assert ">another</option>" in text
    assert "of strangers" not in text


def test_without_a_configuration_the_form_says_how_to_get_one(seen_by, olga, workspace):
    document = DocumentFactory(workspace=workspace, status="processed")

    text = text_of(seen_by(olga, f"/documents/{document.pk}/"))

    assert f"The workspace {workspace.name} has no configuration yet." in text
    assert "manage.py configuration import" in text


@pytest.mark.parametrize("status", ["processing", "failed"])
def test_a_run_can_start_without_a_processed_document(seen_by, pressed_by, olga, workspace, configuration, status):
    document = DocumentFactory(workspace=workspace, status=status)
    assert 'name="at_once"' in text_of(seen_by(olga, f"/documents/{document.pk}/"))

    pressed_by(olga, f"/documents/{document.pk}/run/", configuration=configuration.pk, at_once="on")

    assert Run.objects.get().waits_for_processing is False


def test_a_run_that_is_refused_says_why(pressed_by, olga, workspace, configuration):
    failed = DocumentFactory(workspace=workspace, status="failed")
    purged = write(DocumentFactory(workspace=workspace, status="processed"), purged_at=clock.now(), file="")

    for document, why in ((failed, "could not be processed"), (purged, "was purged")):
        pressed = pressed_by(olga, f"/documents/{document.pk}/run/", configuration=configuration.pk)
        assert why in pressed.said[0]
        assert pressed.redirect_chain[-1][0] == f"/documents/{document.pk}/"
    assert not Run.objects.exists()


@pytest.mark.parametrize("chosen", ["", "x", "9" * 30, "of strangers"])
def test_only_a_configuration_of_the_same_workspace_is_run(pressed_by, olga, workspace, configuration, chosen):
    document = DocumentFactory(workspace=workspace, status="processed")
    chosen = ConfigurationFactory().pk if chosen == "of strangers" else chosen

    pressed = pressed_by(olga, f"/documents/{document.pk}/run/", configuration=chosen)

    assert pressed.said == ["Nothing was started: choose a configuration of the document's workspace."]
    assert not Run.objects.exists()


def test_who_only_looks_gets_no_form_and_starts_nothing(seen_by, pressed_by, ravi, workspace, configuration):
    document = DocumentFactory(workspace=workspace, status="processed")

    assert "Run a configuration" not in text_of(seen_by(ravi, f"/documents/{document.pk}/"))
    assert pressed_by(ravi, f"/documents/{document.pk}/run/", configuration=configuration.pk).status_code == 403
    assert not Run.objects.exists()
