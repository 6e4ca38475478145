"""Every failpoint with every kind of failure: the process dies, gets an error, or is stopped for longer than its lease
and continues. Then others recover, all work ends, and all invariants hold.

A new failpoint needs one line in `LIVES`: the life that reaches it.
"""

import os
import signal

import pytest
from django.core.files.storage import default_storage
from django.db import connection

from builds import lifecycle as builds
from builds.models import Build
from config import environment
from documents import lifecycle as documents
from documents import periodic
from documents.models import (
    Document,
    DocumentField,
    DocumentProblem,
    DocumentProcessingJob,
    LessonEvidence,
    SenderLesson,
    Stage,
)
from feeds.clustering import consistency
from feeds.models import Brief, BriefItem, EventCluster, PurgedUrl, RawArticle
from runs import periodic as run_tasks
from runs.models import Artifact, Run
from schedules import cron
from schedules.models import DueSlot, JobRun, ScheduledJob
from tests.factories import W2, events_of
from tests.feeds.clustered import partition
from tests.races.invariants import assert_all_hold
from tests.schedules.declared import each
from tests.stepping import until
from tests.sweep import world
from tests.sweep.lives import UPLOADED
from webhooks.models import Delivery, Webhook
from work import failpoints, recovery
from work.models import Event
from work.work_types import all_work_types

LIVES = {
    "run.create.counted": "run",
    "run.created": "run",
    "run.document_followed": "document",
    "run.refused": "failure",
    "run.claim.selected": "run",
    "run.claimed": "run",
    "lease.before_renew": "run",
    "artifact.written": "run",
    "run.finish.before_commit": "run",
    "run.finish.after_commit": "run",
    "cancel.read": "cancel",
    "build.claim.selected": "build",
    "build.claimed": "build",
    "build.finish.before_commit": "build",
    "build.finish.after_commit": "build",
    "job.claim.selected": "document",
    "job.claimed": "document",
    "job.finish.before_commit": "document",
    "job.finish.after_commit": "document",
    "stage.claim.selected": "document",
    "stage.claimed": "document",
    "stage.finish.before_commit": "document",
    "stage.finish.after_commit": "document",
    "job.analysed": "processing",
    "job.embedded": "processing",
    "lesson.before_commit": "lesson",
    "sender_update.before_commit": "lesson",
    "retyping.before_commit": "lesson",
    "job_run.claim.selected": "slot",
    "slot.decided": "slot",
    "slot.inserted": "slot",
    "job_run.finish.before_commit": "slot",
    "job_run.finish.after_commit": "slot",
    "recover.selected": "recovery",
    "recover.before_commit": "recovery",
    "engine.before_spawn": "engine",
    "engine.spawned": "engine",
    "engine.exited": "engine",
    "build.exited": "environment",
    "upload.blob_written": "upload",
    "upload.before_commit": "upload",
    "retention.selected": "retention",
    "retention.purged": "retention",
    "brief.published": "brief",
    "clustering.embedded": "clustering",
    "clustering.linked": "clustering",
    "ingestion.fetched": "ingestion",
    "ingestion.stored": "ingestion",
    "retention.articles.selected": "cleanup",
    "retention.articles.before_commit": "cleanup",
    "retention.clusters.before_commit": "cleanup",
    "retention.runs.before_commit": "cleanup",
    "retention.runs.pruned": "cleanup",
    "delivery.written": "webhook",
    "delivery.claim.selected": "webhook",
    "delivery.claimed": "webhook",
    "delivery.sent": "webhook",
    "delivery.finish.before_commit": "webhook",
    "delivery.finish.after_commit": "webhook",
}
# These lives start engines; `test_engine_crash_points.py` sweeps them with a witness.
WITH_ENGINES = {"engine", "environment"}
# These lives run in a slot and start readers and embedders.
WITH_PROGRAMS = {"processing", "clustering"}
# Reading and embedding take a while, and these lives do not renew their leases.
SLOW = WITH_PROGRAMS | {"ingestion"}
# The process has written and not committed: the row is locked, and on SQLite the whole database.
INSIDE_A_TRANSACTION = (
    *("run.create.counted", "claim.selected", "job.claimed", "before_commit"),
    *("retention.selected", "retention.articles.selected", "run.document_followed"),
)
# The same for other rows than the claimed one, so only SQLite blocks the recovery of that one.
INSIDE_ANOTHER_TRANSACTION = ("brief.published", "clustering.linked", "ingestion.stored", "delivery.written")
# These few run with every `make test`.
SMOKE = {
    ("run.claimed", "kill9"),
    ("run.document_followed", "kill9"),
    ("stage.claimed", "stop"),
    ("clustering.linked", "kill9"),
    ("ingestion.stored", "kill9"),
    ("retention.articles.before_commit", "kill9"),
    ("delivery.sent", "kill9"),
}
# These lives use SQL written for each database. The others use the ORM.
OF_EACH_DATABASE = {"run", "cancel", "build", "document", "failure", "slot", "recovery", "webhook", "lesson"}


def marks(point, way):
    tier = [] if (point, way) in SMOKE else [pytest.mark.long]
    return tier if LIVES[point] in OF_EACH_DATABASE else [*tier, pytest.mark.once]


SWEEP = [
    pytest.param(point, way, marks=marks(point, way))
    for point, life in LIVES.items()
    if life not in WITH_ENGINES
    for way in ("kill9", "raise", "stop")
]


def test_every_failpoint_has_a_life_that_passes_it():
    assert set(LIVES) == failpoints.NAMES


@pytest.mark.parametrize(("point", "way"), SWEEP)
def test_nothing_is_lost_doubled_or_stuck(programs, settings, monkeypatch, server, tmp_path, point, way):
    settings.ADE_KEEP_RUNS = environment.KINDS["ADE_KEEP_RUNS"].parse(world.KEEP_RUNS)
    own = {}
    if LIVES[point] == "lesson":
        # Words are stored under the ID of a job, which tests that run beside this one have too.
        settings.VAR_DIR = tmp_path / "var"
        settings.MEDIA_ROOT = settings.VAR_DIR / "media"
        settings.MEDIA_ROOT.mkdir(parents=True)
        own = {"ADE_VAR_DIR": settings.VAR_DIR}
    world.create()
    if LIVES[point] == "clustering":
        world.create_articles()
    if LIVES[point] == "ingestion":
        world.create_feeds(server)
    if LIVES[point] == "cleanup":
        world.create_what_is_kept_no_longer()
    if LIVES[point] == "webhook":
        world.create_webhook(server, settings)
    if LIVES[point] == "lesson":
        world.create_what_is_learned()
    limits = {
        "ADE_LEASE_SECONDS": 10 if LIVES[point] in SLOW else 1,
        "ADE_QUEUE_SIZE": 100,
        "ADE_FEED_NETWORKS": world.FEED_NETWORK,
        "ADE_KEEP_RUNS": world.KEEP_RUNS,
        "ADE_WEBHOOK_NETWORKS": world.FEED_NETWORK,
        **own,
    }

    process = programs.main("tests.sweep.lives", LIVES[point], ADE_FAILPOINTS=f"{point}:{way}*1", **limits)
    {"kill9": it_is_killed, "raise": it_gets_an_error, "stop": it_stands_still}[way](process, point, monkeypatch)
    world.let_time_pass()
    recovery.rescue_expired(all_work_types(), W2)

    what_was_promised_is_so(process.said)
    assert_all_hold()
    world.finish_everything()
    what_was_promised_is_so(process.said)
    what_was_due_is_purged()
    what_was_due_has_run_once()
    if LIVES[point] == "clustering":
        what_happened_is_clustered()
    else:
        what_happened_is_told()
    what_was_told_is_kept_once()
    if LIVES[point] == "cleanup":
        what_was_kept_no_longer_is_gone()
    if LIVES[point] == "webhook":
        what_has_ended_was_delivered(server)
    if LIVES[point] == "lesson":
        what_was_corrected_is_learned_once()
    assert_all_hold(quiet=True)


@pytest.mark.long
@pytest.mark.parametrize(("point", "life"), [("build.claimed", "build"), ("stage.claimed", "stage")])
def test_work_that_kills_every_worker_fails_after_so_many(programs, point, life):
    world.create()
    build, job = Build.objects.get(status="queued"), DocumentProcessingJob.objects.get()
    row, at_most = {"build": (build, builds.LOSSES), "stage": (job, documents.FATAL_LOSSES)}[life]
    deaths = 0

    while row.status not in row.TERMINAL:
        world.let_time_pass()
        world.advance_documents()
        it_is_killed(programs.main("tests.sweep.lives", life, ADE_FAILPOINTS=f"{point}:kill9"), point, None)
        deaths += 1
        world.let_time_pass()
        recovery.rescue_expired(all_work_types(), W2)
        world.settle_documents()
        row.refresh_from_db()

    assert (row.status.lower(), deaths) == ("failed", at_most)
    assert_all_hold()
    world.finish_everything()
    assert Run.objects.filter(build=build).get().status == ("failed" if life == "build" else "succeeded")
    assert_all_hold(quiet=True)


def it_is_killed(process, point, monkeypatch):
    assert process.code() == -signal.SIGKILL, process.logged()


def it_gets_an_error(process, point, monkeypatch):
    # Recovery treats an error as one of that row or kind, a slot as one of its work, and learning as one of that
    # correction; all continue.
    goes_on = point.startswith(("recover.", "lesson.")) or LIVES[point] in WITH_PROGRAMS
    assert process.code() == (0 if goes_on else 1), process.logged()
    assert f"failpoint {point}" in process.logged()


def it_stands_still(process, point, monkeypatch):
    until(process.is_stopped)
    taken = taken_by_others(point, monkeypatch)
    process.send(signal.SIGCONT)

    assert process.code() == 0, process.logged()
    refused = {(e.subject_kind, e.subject_id) for e in Event.objects.filter(kind="LATE_WRITE_REFUSED")}
    # A job that checks its claim regularly notices the loss itself and attempts no late write.
    assert refused == taken or (LIVES[point] == "clustering" and not refused)


def taken_by_others(point, monkeypatch):
    """Return what another worker has recovered from this process after its lease."""
    held = {(k.name, pk) for k in all_work_types() if k.rescue for pk in held_by_the_process(k.states)}
    until(lambda: not any(still_leased(kind) for kind in all_work_types() if kind.rescue))
    is_locked = point.endswith(INSIDE_A_TRANSACTION)
    if not is_locked and not (point in INSIDE_ANOTHER_TRANSACTION and connection.vendor == "sqlite"):
        recovery.rescue_expired(all_work_types(), W2)
        assert not any(held_by_the_process(kind.states) for kind in all_work_types() if kind.rescue)
        return held
    # The process holds the lock: recovery times out soon and leaves the row to a later tick.
    monkeypatch.setattr(recovery, "STATEMENT_TIMEOUT_MS", 200)
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA busy_timeout = 200")
    recovery.rescue_expired(all_work_types(), W2)
    connection.close()
    return set()


def held_by_the_process(states):
    return states.rows.filter(lease_owner__endswith=":bootsweep").values_list("pk", flat=True)


def still_leased(kind):
    return kind.states.rows.filter(lease_owner__endswith=":bootsweep", lease_expires_at__gt=recovery.clock.now())


def what_was_promised_is_so(said):
    """Check that every answer still holds, whatever came after."""
    said = [(what, answer) for what, answer in said if answer]
    for what, answer in said:
        if what == "submitted":
            assert Run.objects.filter(pk=answer).exists()
        elif what == "uploaded":
            with Document.objects.get(pk=answer).file.open() as file:
                assert file.read() == UPLOADED
        elif what == "purged":
            assert not Document.objects.filter(file=answer).exists()
            assert not default_storage.exists(answer)
        elif what == "published":
            assert Artifact.objects.filter(run_id=answer).count() == 1
        elif what == "cancelled" and answer[1] in ("cancelled", "running"):
            run = Run.objects.get(pk=answer[0])
            assert run.status == "cancelled" or run.cancel_requested_at
        elif what == "briefed":
            assert Brief.objects.filter(scheduled_for=answer).exists()
        elif what in PROMISES:
            model, status = PROMISES[what]
            assert model.objects.get(pk=answer).status == status


def what_was_due_is_purged():
    """Check that the documents were purged once, and that their files are gone or will be swept."""
    for document in Document.objects.filter(name__in=["first", "second"]):
        assert (document.text, document.chunks.count(), bool(document.purged_at)) == ("", 0, True)
        (event,) = events_of(document).filter(kind="DOCUMENT_PURGED")
        key = event.data["file"]
        if default_storage.exists(key):
            os.utime(default_storage.path(key), (0, 0))
        periodic.Sweeper(
            lambda key=key: iter([key]) if default_storage.exists(key) else iter(()), periodic._keys_of_documents
        ).sweep()
        assert not default_storage.exists(key)


def what_was_due_has_run_once():
    """Check that each slot has its row, including the one whose worker died, and that none waits."""
    row = ScheduledJob.objects.get(name=each.name)
    first, last = row.created_at - world.SLOTS_OF, row.decided_until
    run = JobRun.objects.filter(job_name=row.name).order_by("scheduled_for")
    assert [r.scheduled_for for r in run] == list(cron.slots_between(row.cron, row.time_zone, first, last))
    assert {r.status for r in run} <= {"success", "failed"}
    assert not DueSlot.objects.exists()


def what_happened_is_told():
    """Check that the event is complete in one brief: the brief of the killed life, or the next one."""
    (told,) = BriefItem.objects.exclude(headline=world.OLD_NEWS)
    assert (told.headline, told.articles.count()) == ("Bridge closed", 2)


def what_happened_is_clustered():
    """Check that each article is in one cluster."""
    assert partition() == {frozenset(urls) for urls in world.events_told().values()}
    assert list(consistency.problems()) == []


def what_was_told_is_kept_once():
    """Check that each article is stored once, even if the ETag of its feed was stored before the crash."""
    feeds = world.served_feeds()
    told = {url for feed in feeds for url in world.urls_of(feed)}
    assert sorted(RawArticle.objects.filter(feed__in=feeds).values_list("url", flat=True)) == sorted(told)
    assert not feeds.exclude(failures=0).exists()


def what_was_corrected_is_learned_once():
    """Check that one lesson with one confirmation gives each invoice its number, and that what has become an invoice
    lacks a seller.
    """
    (evidence,) = LessonEvidence.objects.all()
    assert (evidence.is_right, SenderLesson.objects.get()) == (True, evidence.lesson)
    given = DocumentField.objects.filter(source="sender", name="invoice_number").order_by("document")
    assert list(given.values_list("value", flat=True)) == list(world.NUMBERS)
    missing = DocumentProblem.objects.filter(code="field_missing", field="seller", document__name=world.RECEIVED)
    assert missing.count() == world.JUDGED_AGAIN


def what_was_kept_no_longer_is_gone():
    """Check that articles were purged once, that those in briefs remain, and that each purged one has a tombstone."""
    named = RawArticle.objects.get(url__endswith="/named")
    for gone in ("first", "second"):
        assert not RawArticle.objects.filter(url__endswith=f"/{gone}").exists()
    assert PurgedUrl.objects.count() == 2
    cluster = named.links.get().cluster
    assert cluster.article_count == cluster.links.count() == 1
    assert not EventCluster.objects.filter(title="empty").exists()
    assert not Artifact.objects.filter(name="old.json").exists()
    (run,) = Run.objects.filter(pruned_at__isnull=False)
    assert [event.kind for event in events_of(run)] == ["RUN_PRUNED"]
    key = f"runs/{run.pk}/1/0001"
    if default_storage.exists(key):
        assert not run_tasks._artifacts.keys_of([key])


def what_has_ended_was_delivered(server):
    """Check that each event has one delivery, which its receiver got at least once."""
    told = Document.objects.filter(workspace=Webhook.objects.get().workspace)
    ended = Event.objects.filter(kind="DOCUMENT_PROCESSED", subject_id__in=told.values("pk"))
    deliveries = Delivery.objects.filter(status="delivered")
    assert sorted(deliveries.values_list("event_id", flat=True)) == sorted(ended.values_list("pk", flat=True))
    assert {asked.headers["x-ade-delivery"] for asked in server.asked} == {str(each.pk) for each in deliveries}
    assert Delivery.objects.count() == len(deliveries) > 0


PROMISES = {
    "delivered": (Delivery, "delivered"),
    "succeeded": (Run, "succeeded"),
    "built": (Build, "ready"),
    "done": (Stage, "DONE"),
    "success": (JobRun, "success"),
}
