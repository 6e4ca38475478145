"""Every page and every button of the console. tests/console/test_every_page.py fails for a route that is missing here.

`ids` create rows of a workspace for the parameters of the path. An `is_shared` page belongs to the installation. A
button is posted to and not viewed; `permission` is the required permission where no workspace decides.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.urls import reverse

from console.urls import urlpatterns
from tests.factories import (
    ArtifactFactory,
    BuildFactory,
    ClusterFactory,
    ConfigurationFactory,
    DocumentFactory,
    DocumentProblemFactory,
    FeedFactory,
    JobRunFactory,
    RunFactory,
    SenderFactory,
    SenderLessonFactory,
    table_of,
)
from work import clock
from work.models import Worker


@dataclass(frozen=True)
class Page:
    ids: dict[str, Callable[[Any], Any]] = field(default_factory=dict)
    is_button: bool = False
    # Belongs to the installation: its path has no rows of a workspace.
    is_shared: bool = False
    permission: str = ""
    # Concerns only the user who presses it.
    is_own: bool = False
    # A download, not a page.
    is_file: bool = False
    # No authentication required.
    anybody: bool = False

    def path(self, name, workspace):
        return reverse(f"console:{name}", kwargs={key: made(make(workspace)) for key, make in self.ids.items()})


def made(value):
    return getattr(value, "pk", value)


def run(workspace):
    configuration = ConfigurationFactory(workspace=workspace)
    return RunFactory(configuration=configuration, input_document__workspace=workspace)


def build(workspace):
    return BuildFactory(configuration=ConfigurationFactory(workspace=workspace))


def document(workspace):
    return DocumentFactory(workspace=workspace)


def document_with_table(workspace):
    return table_of(document(workspace)).document


def artifact(workspace):
    return ArtifactFactory(run=run(workspace))


def worker(_):
    now = clock.now()
    known = {"name": "w1", "host": "here", "machine": "m", "pid": 101, "pid_started": 1, "version": "1"}
    return Worker.objects.create(
        **known, boot_id=f"boot{Worker.objects.count()}", started_at=now, heartbeat_at=now, lanes={"run": 2}
    )


def feed(_):
    return FeedFactory()


def cluster(_):
    return ClusterFactory()


def job(_):
    return "rss_ingestion"


def problem(workspace):
    return DocumentProblemFactory(document=document(workspace))


def sender(workspace):
    return SenderLessonFactory(sender__workspace=workspace).sender


def sender_off(workspace):
    return SenderFactory(workspace=workspace, switched_off_at=clock.now(), switched_off_by="olga")


def lesson(workspace):
    return SenderLessonFactory(sender__workspace=workspace)


def lesson_off(workspace):
    off = {"switched_off_at": clock.now(), "switched_off_by": "olga"}
    return SenderLessonFactory(sender__workspace=workspace, **off)


def job_run(_):
    return JobRunFactory(job_name="rss_ingestion")


OF_RUN, OF_BUILD, OF_DOCUMENT, OF_ARTIFACT = ({"id": make} for make in (run, build, document, artifact))
OF_JOB: dict[str, Any] = {"name": job}
PAGES: dict[str, Page] = {
    "dashboard": Page(),
    "sign_in": Page(anybody=True),
    "sign_out": Page(is_button=True, anybody=True),
    "news": Page(is_shared=True),
    # Every user may mark news as seen.
    "seen": Page(is_shared=True, is_own=True, is_button=True),
    "pause_queue": Page(is_button=True, is_shared=True, permission="runs.change_queue"),
    "resume_queue": Page(is_button=True, is_shared=True, permission="runs.change_queue"),
    "runs": Page(),
    "run": Page(OF_RUN),
    "run_log": Page(OF_RUN),
    "run_compare": Page(OF_RUN),
    "cancel_run": Page(OF_RUN, is_button=True),
    "run_again": Page(OF_RUN, is_button=True),
    "artifact": Page(OF_ARTIFACT),
    "builds": Page(),
    "build": Page(OF_BUILD),
    "build_log": Page(OF_BUILD),
    "cancel_build": Page(OF_BUILD, is_button=True),
    "build_again": Page(OF_BUILD, is_button=True),
    "documents": Page(),
    "document": Page(OF_DOCUMENT),
    "correct_field": Page(OF_DOCUMENT, is_button=True),
    "withdraw_field": Page(OF_DOCUMENT, is_button=True),
    "table": Page({"id": document_with_table, "name": lambda _: "table_1"}),
    "table_export": Page(
        {"id": document_with_table, "name": lambda _: "table_1", "form": lambda _: "csv"}, is_file=True
    ),
    "correct_cell": Page(OF_DOCUMENT, is_button=True),
    "withdraw_cell": Page(OF_DOCUMENT, is_button=True),
    "reprocess_document": Page(OF_DOCUMENT, is_button=True),
    "document_quality": Page(),
    "choose_type": Page(OF_DOCUMENT, is_button=True),
    "start_document_runs": Page(is_button=True, is_shared=True),
    "run_document": Page(OF_DOCUMENT, is_button=True),
    "dismiss_problem": Page({"id": problem}, is_button=True),
    "senders": Page(),
    "sender": Page({"id": sender}),
    "sender_preview": Page({"id": sender}),
    "sender_export": Page({"id": sender}, is_file=True),
    "apply_sender": Page({"id": sender}, is_button=True),
    "switch_off_sender": Page({"id": sender}, is_button=True),
    "switch_on_sender": Page({"id": sender_off}, is_button=True),
    "forget_sender": Page({"id": sender}, is_button=True),
    "switch_off_lesson": Page({"id": lesson}, is_button=True),
    "switch_on_lesson": Page({"id": lesson_off}, is_button=True),
    "failures": Page(),
    "jobs": Page(is_shared=True),
    "job": Page(OF_JOB, is_shared=True),
    "job_why": Page(OF_JOB, is_shared=True),
    "job_run": Page(OF_JOB | {"id": job_run}, is_shared=True),
    "backfill_job": Page(OF_JOB, is_button=True, is_shared=True, permission="schedules.change_scheduledjob"),
    "trigger_job": Page(OF_JOB, is_button=True, is_shared=True, permission="schedules.change_scheduledjob"),
    "pause_job": Page(OF_JOB, is_button=True, is_shared=True, permission="schedules.change_scheduledjob"),
    "resume_job": Page(OF_JOB, is_button=True, is_shared=True, permission="schedules.change_scheduledjob"),
    "feeds": Page(is_shared=True),
    "feed": Page({"id": feed}, is_shared=True),
    "import_feeds": Page(is_button=True, is_shared=True, permission="feeds.add_feedsource"),
    "export_feeds": Page(is_shared=True, is_file=True),
    "check_feed": Page({"id": feed}, is_button=True, is_shared=True, permission="feeds.change_feedsource"),
    "pause_feed": Page({"id": feed}, is_button=True, is_shared=True, permission="feeds.change_feedsource"),
    "resume_feed": Page({"id": feed}, is_button=True, is_shared=True, permission="feeds.change_feedsource"),
    "clusters": Page(is_shared=True),
    "cluster": Page({"id": cluster}, is_shared=True),
    "workers": Page(is_shared=True),
    "worker": Page({"id": worker}, is_shared=True),
    "drain_worker": Page({"id": worker}, is_button=True, is_shared=True, permission="runs.change_queue"),
    "promises": Page(is_shared=True),
    "check_promises": Page(is_button=True, is_shared=True, permission="runs.change_queue"),
    "late_writes": Page(),
}
# Covered by other tests: streams have no end, images are not pages, families have no rows, and forms are shown only to
# users who may submit them.
ELSEWHERE = {
    *("change_password", "password_changed"),
    *("live", "live_one", "document_page", "artifact_page", "document_add"),
    *("add_feed", "rehearse_backfill", "document_runs", "document_runs_outcome"),
    *("failure", "note_failure", "rehearse_failure", "failure_again", "failure_outcome"),
}
ROUTES = {each.name for each in urlpatterns}
LOOKED_AT = sorted(name for name, each in PAGES.items() if not each.is_button)
PRESSED = sorted(name for name, each in PAGES.items() if each.is_button and not each.anybody)
GUARDED = [name for name in PRESSED if not PAGES[name].is_own]
