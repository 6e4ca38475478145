"""Press every button of the console in a real browser and check its effect, with and without JavaScript."""

from urllib.parse import urlsplit

import pytest
from django.urls import resolve

from ade_understanding.vocabulary import label_of
from builds.models import Build
from console.urls import urlpatterns
from documents.models import CellCorrection, FieldCorrection, Sender
from feeds.models import FeedSource
from runs import queue
from runs.models import Run
from schedules.models import ScheduledJob
from tests.browser.consoles import Operator
from tests.console.table import PRESSED
from tests.factories import (
    BuildFactory,
    ConfigurationFactory,
    DocumentFactory,
    DocumentFieldFactory,
    DocumentProblemFactory,
    FeedFactory,
    MembershipFactory,
    RunFactory,
    SenderLessonFactory,
    UserFactory,
    table_of,
    write,
)
from work import boots
from work.models import Worker

pytestmark = [pytest.mark.once, pytest.mark.long, pytest.mark.django_db(transaction=True)]

JOB = "/jobs/rss_ingestion/"
# Buttons on the pages of failure families, which the table of pages does not cover.
OF_FAMILIES = {"note_failure", "failure_again", "add_feed"}
# Offered when lessons would change a past document; tests/console/test_senders.py presses it.
OFFERED_FOR_CHANGES = {"apply_sender"}
OPML = b'<opml version="2.0"><body><outline type="rss" xmlUrl="https://b.example/rss" text="B"/></body></opml>'


class Presser(Operator):
    """Records the routes to which it has sent a POST."""

    def __init__(self, *given, **options):
        super().__init__(*given, **options)
        self.sent = set()
        self.page.on("request", lambda request: request.method == "POST" and self.sent.add(self._route(request.url)))

    def _route(self, url):
        return resolve(urlsplit(url).path).url_name

    def act(self, path, label, confirm="", reason=None):
        """Open the confirmation of an action and confirm it; return the messages then."""
        self.go(path)
        self.page.locator("details.act > summary", has_text=label).click()
        if reason is not None:
            self.page.get_by_label("Reason").fill(reason)
        return self.push(confirm or label)

    def push(self, name):
        self.press(self.page.locator("main").get_by_role("button", name=name, exact=True))
        return self.page.locator(".messages").inner_text()


@pytest.fixture
def root(workspace):
    user = UserFactory(username="root", is_staff=True, is_superuser=True)
    return MembershipFactory(workspace=workspace, user=user, role="admin").user


@pytest.mark.parametrize(("scripts", "width", "scheme"), [(True, 1440, "light"), (False, 375, "dark")])
def test_every_button_does_what_it_says(look, root, workspace, scripts, width, scheme):
    person = look(root, as_a=Presser, scripts=scripts, width=width, scheme=scheme)

    runs(person, workspace)
    builds(person, workspace)
    documents(person, workspace)
    tables(person, workspace)
    types(person, workspace)
    senders(person, workspace)
    families(person, workspace)
    jobs(person)
    feeds(person)
    the_rest(person)

    assert person.sent == {*PRESSED, *OF_FAMILIES} - OFFERED_FOR_CHANGES
    assert person.sent <= {route.name for route in urlpatterns}
    assert person.complaints == []


def runs(person, workspace):
    run = RunFactory(configuration=ConfigurationFactory(workspace=workspace), input_document__workspace=workspace)

    assert person.act(f"/runs/{run.pk}/", "Cancel", "Cancel this run", "too many") == "Cancelled 1 run."
    run.refresh_from_db()
    assert run.status == "cancelled"
    person.act(f"/runs/{run.pk}/", "Run again")
    assert Run.objects.filter(status="queued", input_document=run.input_document_id).exists()


def builds(person, workspace):
    build = BuildFactory(configuration=ConfigurationFactory(workspace=workspace))

    person.act(f"/builds/{build.pk}/", "Cancel", "Cancel this build", "wrong files")
    assert Build.objects.get(pk=build.pk).status == "cancelled"
    person.act(f"/builds/{build.pk}/", "Build again")
    assert Build.objects.get(pk=build.pk).status == "queued"


def documents(person, workspace):
    document = DocumentFactory(workspace=workspace, status="processed")
    DocumentFieldFactory(document=document, name="total", value="324.00")
    ConfigurationFactory(workspace=workspace)
    path = f"/documents/{document.pk}/"

    person.go(path)
    person.page.locator("#field-1 details.fix > summary").click()
    person.page.get_by_label("Value of total").fill("423.00")
    person.push("Correct total")
    assert FieldCorrection.objects.get(document=document).value == "423.00"
    person.page.locator("#field-1 details.fix > summary").click()
    person.push("Withdraw correction of total")
    assert not FieldCorrection.objects.filter(document=document).exists()
    person.act(path, "Run a configuration", "Run")
    (run,) = Run.objects.filter(input_document=document)
    assert person.page.url.endswith(f"/runs/{run.pk}/")
    another = DocumentFactory(workspace=workspace, status="processed")
    person.go("/documents/")
    person.press(person.page.get_by_role("link", name="Run a configuration", exact=True))
    person.press(person.page.get_by_role("button", name="Show its documents"))
    person.page.get_by_role("checkbox", name=f"Run over document {another.pk},").check()
    person.push("Run over the chosen documents")
    assert Run.objects.filter(input_document=another, status="queued").exists()
    person.act(path, "Process again")
    document.refresh_from_db()
    assert document.status == "processing"


def tables(person, workspace):
    document = table_of(DocumentFactory(workspace=workspace, status="processed")).document

    person.go(f"/documents/{document.pk}/")
    person.press(person.page.get_by_role("link", name="table_1"))
    person.press(person.page.get_by_role("link", name="1.50"))
    person.page.get_by_label("Price in row 1").fill("1.75")
    person.push("Correct")
    assert CellCorrection.objects.get(document=document).text == "1.75"
    person.push("Withdraw")
    assert not CellCorrection.objects.filter(document=document).exists()


def types(person, workspace):
    document = write(DocumentFactory(workspace=workspace, status="processed"), to_review=True)
    problem = DocumentProblemFactory(document=document)

    person.go(f"/documents/{document.pk}/")
    person.push("Dismiss problem 1")
    problem.refresh_from_db()
    assert problem.dismissed_by == "root"
    person.page.locator("summary", has_text="Choose another type").click()
    person.page.get_by_label("Type").select_option("letter")
    person.push("Choose")
    document.refresh_from_db()
    assert (document.type, document.type_chosen_by) == ("letter", "root")


def senders(person, workspace):
    lesson = SenderLessonFactory(sender__workspace=workspace)
    path = f"/senders/{lesson.sender_id}/"

    person.go(path)
    person.push(f"Switch off {label_of(lesson.field)}")
    lesson.refresh_from_db()
    assert lesson.switched_off_at
    person.push(f"Switch on {label_of(lesson.field)}")
    person.act(path, "Switch off")
    assert Sender.objects.get().switched_off_at
    person.act(path, "Switch on")
    assert Sender.objects.get().switched_off_at is None
    person.act(path, "Forget", "Forget this sender")
    assert not Sender.objects.filter(forgotten_at=None).exists()


def families(person, workspace):
    configuration = ConfigurationFactory(workspace=workspace)
    run = RunFactory(configuration=configuration, input_document__workspace=workspace, status="failed")
    write(run, error_message="KeyError: 'total'")

    person.go("/failures/")
    person.press(person.page.locator("tbody a").first)
    person.page.locator("summary", has_text="Write a note").click()
    person.page.get_by_label("Note for").fill("the template has changed")
    person.push("Save")
    assert "the template has changed" in person.page.locator(".note-text").inner_text()
    person.press(person.page.get_by_role("link", name="Run all of these again"))
    person.press(person.page.get_by_role("button", name="Run 1 again"))
    assert Run.objects.filter(input_document=run.input_document_id, status="queued").count() == 1


def jobs(person):
    def row():
        return ScheduledJob.objects.get(name="rss_ingestion")

    person.act(JOB, "Pause", "Pause this job", "the feeds are being moved")
    assert row().paused_by == "root"
    assert "the feeds are being moved" in person.page.locator("main").inner_text()
    person.act(JOB, "Resume")
    assert row().paused_at is None
    assert person.act(JOB, "Run now")
    person.go(JOB)
    person.page.get_by_label("From (UTC)").fill("2026-03-01T06:00")
    person.page.get_by_label("To (inclusive, UTC)").fill("2026-03-01T07:00")
    person.press(person.page.get_by_role("button", name="Preview"))
    person.press(person.page.locator("main").get_by_role("button", name="slot"))
    assert person.page.locator(".messages").inner_text()


def feeds(person):
    feed = FeedFactory()
    path = f"/feeds/{feed.pk}/"

    person.act(path, "Pause", "Pause this feed", "it repeats itself")
    assert FeedSource.objects.get(pk=feed.pk).paused_at
    person.act(path, "Resume")
    assert FeedSource.objects.get(pk=feed.pk).paused_at is None
    assert person.act(path, "Check now")
    person.go("/feeds/add/")
    person.page.get_by_label("URL").fill("https://a.example/rss")
    person.push("Add")
    assert FeedSource.objects.filter(url="https://a.example/rss").exists()
    person.go("/feeds/add/")
    person.page.get_by_label("OPML").set_input_files({"name": "b.opml", "mimeType": "text/xml", "buffer": OPML})
    person.press(person.page.get_by_role("button", name="Add all"))
    assert FeedSource.objects.filter(url="https://b.example/rss").exists()


def the_rest(person):
    worker = boots.register("w1", "boot1", {"run": 2})

    person.act("/", "Pause the queue", reason="we move")
    assert queue.current_row().paused_at
    person.push("Resume the queue")
    assert queue.current_row().paused_at is None
    person.act(f"/workers/{worker.pk}/", "Drain", "Drain this worker", "a new version")
    assert Worker.objects.get(pk=worker.pk).drain_requested_by == "root"
    assert person.act("/promises/", "Check now")
    person.go("/news/")
    assert "Marked everything up to" in person.push("Mark as seen")
