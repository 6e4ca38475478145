import pytest

from runs.models import Run
from tests.factories import DocumentFactory, RunFactory
from work.models import Event

pytestmark = [pytest.mark.once, pytest.mark.long, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def run_of(configuration, build, workspace):
    def run_of(name="invoice.pdf", **values):
        return RunFactory(
            configuration=configuration, input_document=DocumentFactory(workspace=workspace, name=name), **values
        )

    return run_of


def actors(run):
    return list(
        Event.objects.filter(subject_kind="run", subject_id=run.pk).order_by("id").values_list("actor", flat=True)
    )


def reasons(run):
    return list(
        Event.objects.filter(subject_kind="run", subject_id=run.pk).order_by("id").values_list("message", flat=True)
    )


def test_olga_cancels_from_the_list(sign_in, olga, run_of):
    queued, running, ended = run_of("new.pdf"), run_of("slow.pdf", status="running"), run_of("old.pdf", status="failed")
    person = sign_in(olga)
    page = person.page

    person.press(page.get_by_role("link", name="Runs", exact=True).last)
    assert page.locator("#result_list tbody tr").count() == 3
    page.locator("#action-toggle").check()
    page.get_by_label("Action:").select_option(label="Cancel")
    person.press(page.get_by_role("button", name="Go"))
    assert page.locator(".lead").inner_text() == (
        "Of 3 selected, 1 will be cancelled, 1 will be asked to stop, 1 has already finished."
    )
    assert {run.status for run in Run.objects.all()} == {"queued", "running", "failed"}
    page.get_by_label("Reason:").fill("too many")
    person.press(page.get_by_role("button", name="Cancel: 2 runs"))

    assert person.messages() == [
        "Cancelled 1 run, asked 1 that is running to stop. Skipped 1 that had already finished."
    ]
    statuses = {run.pk: run.status for run in Run.objects.all()}
    assert statuses == {queued.pk: "cancelled", running.pk: "running", ended.pk: "failed"}
    assert actors(queued)[-1] == "olga"
    assert reasons(queued)[-1] == "too many"
    assert person.complaints == []

    with page.expect_download() as download:
        page.get_by_role("link", name="Download as CSV").click()
    assert download.value.suggested_filename == "run-cancel.csv"
    person.press(page.get_by_role("link", name="Back to the list"))
    assert page.locator("#result_list tbody tr").count() == 3
    assert person.complaints == []


def test_olga_runs_again_from_the_list_and_follows_the_link(sign_in, olga, run_of):
    run = run_of(status="failed")
    person = sign_in(olga)
    page = person.page

    person.go("/admin/runs/run/?outcome=failed")
    page.locator("input.action-select").check()
    page.get_by_label("Action:").select_option(label="Run again")
    person.press(page.get_by_role("button", name="Go"))
    person.press(page.get_by_role("button", name="Run again: 1 run"))

    new = Run.objects.exclude(pk=run.pk).get()
    assert person.messages() == ["Queued 1 run again.", f"New: run {new.pk}."]
    assert page.get_by_role("link", name=f"run {new.pk}", exact=True).count() == 2
    person.press(page.get_by_role("link", name=f"run {new.pk}", exact=True).first)
    assert page.locator(".field-outcome .readonly").inner_text() == "queued"
    assert person.complaints == []


def test_olga_uses_the_buttons_of_a_run(sign_in, olga, run_of):
    run = run_of()
    person = sign_in(olga)
    page = person.page

    person.go(f"/admin/runs/run/{run.pk}/change/")
    person.press(page.get_by_role("button", name="Cancel"))

    assert person.messages() == ["Cancelled 1 run."]
    assert page.locator(".field-outcome .readonly").inner_text() == "cancelled"
    assert page.get_by_role("button", name="Cancel").count() == 0
    assert page.locator("fieldset table tbody tr").first.inner_text().split("\t")[2:5] == [
        "RUN_CANCELLED",
        "cancelled",
        "olga",
    ]

    person.press(page.get_by_role("button", name="Run again"))

    assert person.messages()[0] == "Queued 1 run again."
    assert Run.objects.count() == 2
    assert person.complaints == []


def test_olga_edits_a_configuration_and_is_told_what_is_wrong(sign_in, olga, configuration):
    person = sign_in(olga)
    page = person.page

    person.go(f"/admin/builds/configuration/{configuration.pk}/change/")
    page.get_by_label("Files:").fill('{"../main.py": "x = 1"}')
    person.press(page.get_by_role("button", name="Save", exact=True))
    assert "is not a relative path" in page.locator(".errorlist").inner_text()
    page.get_by_label("Files:").fill('{"main.py": "x = 1"}')
    person.press(page.get_by_role("button", name="Save", exact=True))

    assert page.url.endswith("/admin/builds/configuration/")
    configuration.refresh_from_db()
    assert configuration.files == {"main.py": "x = 1"}
    assert person.complaints == []


def test_what_documents_are_called_stays_text(sign_in, olga, run_of):
    name = "<img src=x onerror=alert(1)><script>alert(1)</script>"
    run = run_of(name)
    person = sign_in(olga)
    person.page.on("dialog", lambda dialog: person.complaints.append(dialog.message))

    for path in ("/admin/runs/run/", f"/admin/runs/run/{run.pk}/change/", "/admin/documents/document/"):
        person.go(path)
        assert name in person.page.locator("#content").inner_text()

    assert person.complaints == []


def test_every_page_of_the_menu_is_quiet(sign_in, olga, run_of):
    run_of(status="succeeded")
    person = sign_in(olga)
    page = person.page
    links = [link.get_attribute("href") for link in page.locator("#content-main th a").all()]
    assert len(links) >= 7

    for link in links:
        person.go(link)
        if page.locator("#result_list th a").count():
            person.press(page.locator("#result_list th a").first)
            assert page.locator("#content h1").is_visible()

    assert person.complaints == []


def test_ravi_looks_and_cannot_do_anything(sign_in, ravi, run_of):
    run = run_of()
    person = sign_in(ravi)
    page = person.page

    person.go("/admin/runs/run/")
    assert page.locator("#result_list tbody tr").count() == 1
    assert page.get_by_label("Action:").count() == 0
    person.go(f"/admin/runs/run/{run.pk}/change/")
    assert page.locator(".field-outcome .readonly").inner_text() == "queued"
    assert page.locator("input[type=submit]").count() == 0
    assert person.complaints == []

    forged = page.request.post(
        f"{person.address}/admin/runs/run/{run.pk}/cancel/",
        headers={"X-CSRFToken": next(c["value"] for c in person.context.cookies() if c["name"] == "csrftoken")},
    )

    assert forged.status == 403
    assert Run.objects.get(pk=run.pk).status == "queued"


def test_zed_finds_nothing(sign_in, zed, run_of):
    run = run_of()
    person = sign_in(zed)

    assert "Runs" not in person.page.inner_text("#content")
    assert person.go("/admin/runs/run/").status == 403
    assert person.go(f"/admin/runs/run/{run.pk}/change/").status in (200, 403)
    assert f"run {run.pk}" not in person.page.inner_text("h1, h2")


def test_a_breach_of_the_content_security_policy_would_be_noticed(sign_in, olga):
    person = sign_in(olga)

    person.page.evaluate("document.body.insertAdjacentHTML('beforeend', '<p style=\"color: red\">red</p>')")

    assert any("Content Security Policy" in complaint for complaint in person.complaints)


def test_olga_does_all_that_match_the_filter(sign_in, olga, run_of):
    for n in range(55):
        run_of(f"scan {n}.pdf")
    ended = run_of("old.pdf", status="failed")
    person = sign_in(olga)
    page = person.page

    person.go("/admin/runs/run/?outcome=queued")
    page.locator("#action-toggle").check()
    page.get_by_role("button", name="Select all 55 runs").click()
    page.get_by_label("Action:").select_option(label="Cancel")
    person.press(page.get_by_role("button", name="Go"))
    assert page.locator(".lead").inner_text() == "Of 55 selected, 55 will be cancelled."
    person.press(page.get_by_role("button", name="Cancel: 55 runs"))

    assert person.messages() == ["Cancelled 55 runs."]
    assert page.locator(".rehearsal tbody tr").count() == 55
    assert Run.objects.get(pk=ended.pk).status == "failed"
    assert person.complaints == []
