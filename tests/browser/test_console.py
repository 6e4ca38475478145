"""Every page of the console in a real browser, as it is deployed, for each role, width and colour scheme."""

import json
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import Permission
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from tests.console.table import LOOKED_AT, PAGES
from tests.documents.samples import PNG, SVG
from tests.extractor.pdfs import long_pdf
from tests.extractor.test_workbook import xlsx_of
from tests.factories import (
    ArtifactFactory,
    BuildFactory,
    ClusterFactory,
    ConfigurationFactory,
    DocumentFactory,
    FeedFactory,
    RunFactory,
    RunFieldFactory,
    bring_to,
    force_status,
    write,
)
from work import boots, clock, lifecycle
from work.work_types import work_type_named

# The look of pages and their permissions do not depend on the database.
pytestmark = [pytest.mark.long, pytest.mark.once, pytest.mark.django_db(transaction=True)]

# The widths and colour schemes in which pages are checked.
SMALL = [(375, "light"), (375, "dark")]
SMALL_AND_LARGE = [(375, "dark"), (1440, "light")]
LOOKS = [(360, "light"), *SMALL_AND_LARGE, (1440, "dark")]
# Split, so that no test process has to visit all pages.
PARTS = 3
HOSTILE = "<img src=x onerror=alert(1)>{{7*7}}" + "W" * 120


@pytest.fixture
def much(workspace, run_of):
    """Rows of each kind, some with hostile names."""
    for status in ("queued", "running", "succeeded", "failed", "cancelled"):
        run = run_of(f"{status}.pdf", status=status)
        RunFieldFactory(run=run, name="total", value="324.00", confidence=0.9)
    hostile = run_of(HOSTILE, status="failed")
    write(hostile, error_message=HOSTILE * 3)
    lifecycle.record(work_type_named("run").states, hostile.pk, "LOG", message=HOSTILE * 5, data={"stream": "stdout"})
    ArtifactFactory(run=hostile, name=HOSTILE)
    FeedFactory(title=HOSTILE)
    ClusterFactory()


@pytest.fixture
def previewed(run_of, tmp_path):
    """The pages of an artifact of each type, and of the run that has made them."""
    run = run_of(HOSTILE, status="succeeded")
    wide = [[f"{HOSTILE if column == 3 else 'column'} {column}" for column in range(60)] for _ in range(30)]
    value = {"name": HOSTILE, "lines": [{"total": 1.5, "text": "x" * 400}] * 30}
    contents = {
        "invoice.pdf": long_pdf(tmp_path / "a.pdf", 3).read_bytes(),
        "seal.png": PNG,
        "lines.xlsx": xlsx_of(tmp_path / "a.xlsx", Sales=wide, Notes=[["a", "b"]]).read_bytes(),
        "lines.csv": "\n".join(",".join(row) for row in wide).encode(),
        "result.json": json.dumps(value).encode(),
        "report.txt": (HOSTILE * 20 + "\n\x1b[31mred\u202e\n").encode() * 30,
        "picture.svg": SVG,
        "broken.pdf": b"%PDF-1.7 and no more",
        f"{HOSTILE}.html": f"<html><body>{HOSTILE}</body></html>".encode(),
        "gone.txt": None,
    }
    for number, (name, data) in enumerate(contents.items()):
        kept = "" if data is None else default_storage.save(f"runs/{run.pk}/1/{number:04}", ContentFile(data))
        ArtifactFactory(run=run, name=name, file=kept or "gone", size_bytes=len(data or b""))
    for page in (1, 2, 2):
        RunFieldFactory(run=run, name="total", value=value, page=page, box=[0.1, 0.1, 0.3, 0.2], confidence=0.4)
    pdf = ContentFile(Path(tmp_path, "a.pdf").read_bytes())
    write(run.input_document, file=default_storage.save("documents/a", pdf), content_type="application/pdf")
    pages = [f"/artifacts/{id}/" for id in run.artifacts.order_by("pk").values_list("pk", flat=True)]
    return [*pages, f"/runs/{run.pk}/", f"/runs/{run.pk}/?page=2"]


def paths(workspace):
    return {name: PAGES[name].path(name, workspace) for name in LOOKED_AT if not PAGES[name].is_file}


@pytest.mark.parametrize("part", range(PARTS))
def test_every_page_fits_and_can_be_used_by_everybody(look, olga, workspace, much, part):
    person = look(olga)
    some = list(paths(workspace).items())[part::PARTS]

    wrong = {name: found for name, path in some if (found := person.wrong_at(path, LOOKS))}

    assert wrong == {}


def test_no_id_breaks_in_the_middle(look, olga, workspace, much):
    large = 41234567
    configuration = ConfigurationFactory(workspace=workspace)
    document = DocumentFactory(id=large, workspace=workspace)
    BuildFactory(id=large, configuration=configuration, status="failed", fingerprint="f" * 64)
    run = RunFactory(id=large, configuration=configuration, input_document=document)
    force_status(run, "failed", error_message="found " + "W" * 300)
    person, torn = look(olga), {}

    for path in ("/", "/news/", "/runs/", "/builds/", "/documents/", "/failures/", f"/runs/{large}/"):
        person.go(path)
        for width in (375, 760, 1000, 1440):
            person.page.set_viewport_size({"width": width, "height": 900})
            if found := person.torn() + (person.overflow() if width == 375 else []):
                torn[path, width] = found

    assert torn == {}


@pytest.mark.long(seconds=20)
def test_previews_fit_and_can_be_used_by_everybody(look, ravi, previewed):
    person = look(ravi)
    person.page.on("dialog", lambda dialog: person.complaints.append(dialog.message))

    wrong = {path: found for path in previewed if (found := person.wrong_at(path, SMALL_AND_LARGE))}

    assert wrong == {}


def test_previews_are_whole_without_scripts(look, ravi, previewed):
    person = look(ravi, scripts=False)
    person.go(previewed[-1])
    names = person.page.locator(".looks").count()

    for number in range(names):
        person.go(previewed[-1])
        link = person.page.locator(".looks a", has_text="Preview").nth(number)
        link.focus()
        with person.page.expect_navigation():
            person.page.keyboard.press("Enter")
        assert person.page.locator("h1").inner_text().startswith("File ")
    person.go(previewed[0])
    person.press(person.page.get_by_role("link", name="Next"))
    assert "page 2 of 3" in person.page.locator("#preview").inner_text()
    assert person.page.locator(".sheet img").evaluate("each => each.naturalWidth") == 1000
    assert person.complaints == []


@pytest.mark.long(seconds=20)
def test_empty_pages_are_pages_too(look, olga, workspace):
    person = look(olga)

    wrong = {name: found for name, path in paths(workspace).items() if (found := person.wrong_at(path, SMALL))}

    assert wrong == {}


def test_pages_are_whole_without_scripts(look, olga, workspace, much):
    person = look(olga, scripts=False)

    for name, path in paths(workspace).items():
        person.go(path)
        assert person.page.locator("h1").count() == 1, name
    assert person.complaints == []


def test_who_only_looks_has_no_buttons_and_strangers_have_nothing(look, ravi, zed, workspace, much):
    viewer, stranger = look(ravi), look(zed)

    for name, path in paths(workspace).items():
        viewer.go(path)
        # Every user may mark news as seen.
        assert viewer.page.locator("main form[method=post]:not([action='/news/seen/'])").count() == 0, name
        stranger.go(path)
        assert "invoice.pdf" not in stranger.page.locator("main").inner_text(), name
    assert viewer.complaints == []


def test_what_strangers_wrote_does_nothing(look, olga, workspace, much):
    person = look(olga)
    person.page.on("dialog", lambda dialog: person.complaints.append(dialog.message))

    for path in paths(workspace).values():
        person.go(path)

    assert person.complaints == []


# A run, used by hand


def test_a_run_is_cancelled_by_keyboard_and_without_scripts(look, olga, run_of):
    run = run_of()
    person = look(olga, scripts=False)
    page = person.page

    person.go(f"/runs/{run.pk}/")
    page.locator("summary", has_text="Cancel").focus()
    page.keyboard.press("Enter")
    page.get_by_label("Reason").fill("sent twice")
    person.press(page.get_by_role("button", name="Cancel this run"))

    assert page.locator(".messages").inner_text() == "Cancelled 1 run."
    run.refresh_from_db()
    assert run.status == "cancelled"


def test_a_worker_is_drained_and_its_pages_fit(look, olga):
    olga.user_permissions.add(Permission.objects.get(codename="change_queue"))
    worker = boots.register("w1", "boot1", {"run": 2})
    write(worker, heartbeat_at=clock.now() + timedelta(minutes=5))
    person = look(olga, width=360, scripts=False)
    person.go(f"/workers/{worker.pk}/")

    person.page.locator("summary", has_text="Drain").press("Enter")
    person.page.get_by_label("Reason").fill(HOSTILE)
    person.press(person.page.get_by_role("button", name="Drain this worker"))

    assert f"{worker.owner} is draining" in person.page.locator(".messages").inner_text()
    worker.refresh_from_db()
    assert (worker.drain_requested_by, worker.drain_reason) == ("olga", HOSTILE)
    other = look(olga)
    for path in ("/", "/workers/", f"/workers/{worker.pk}/"):
        assert other.wrong_at(path, [(360, "light"), (360, "dark")]) == []


@pytest.mark.parametrize("before", ["queued", "running"])
def test_the_page_tells_what_really_happened(look, olga, run_of, before):
    run = run_of(status=before)
    person = look(olga, scripts=False)
    page = person.page
    person.go(f"/runs/{run.pk}/")
    page.locator("summary", has_text="Cancel").click()
    bring_to(run, "succeeded")

    person.press(page.get_by_role("button", name="Cancel this run"))

    assert page.locator(".messages").inner_text() == "Skipped 1 that had already finished."
    assert "succeeded" in page.locator(".lead").inner_text()
    run.refresh_from_db()
    assert run.status == "succeeded"
