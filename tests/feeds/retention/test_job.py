import re
import time
from datetime import timedelta

import pytest
from axes.models import AccessAttempt
from django.apps import apps
from django.contrib.sessions.models import Session
from django.db import connection
from django.test.utils import CaptureQueriesContext
from structlog.testing import capture_logs

from feeds.models import EventCluster, PurgedUrl, RawArticle
from feeds.retention import cleanup
from feeds.retention.cleanup import RETENTION, all_policies
from schedules import job_runs
from schedules.jobs import JobFailed, all_jobs
from tests.breaches import much_has_happened
from tests.factories import (
    ArticleFactory,
    ArtifactFactory,
    AuditEntryFactory,
    BriefArticleFactory,
    ClusterArticleFactory,
    ClusterFactory,
    DocumentFactory,
    JobRunFactory,
    KeptAnswerFactory,
    PurgedUrlFactory,
    RunFactory,
    age,
    bring_to,
    write,
)
from tests.feeds.turns import turn_of
from tests.races.invariants import assert_all_hold
from work import clock, pruning
from work.claims import WORKER_STOPPING, Interrupted
from work.models import Worker

pytestmark = pytest.mark.django_db
DAY = 24 * 3600


@pytest.fixture(autouse=True)
def world(settings, tmp_path):
    settings.VAR_DIR, settings.MEDIA_ROOT = tmp_path, tmp_path / "media"
    settings.ADE_KEEP_ARTICLES_DAYS, settings.ADE_KEEP_TOMBSTONES_DAYS = 90, 400
    settings.ADE_KEEP_RUNS = {"succeeded": 30}
    settings.ADE_KEEP_JOB_RUNS, settings.ADE_KEEP_WORKERS_DAYS = {"success": 90}, 365


def clean_up():
    """Run the job in a slot of its own to its end; return the number of rows."""
    turn = turn_of(RETENTION, clock.now())
    rows = RETENTION.function(turn)
    assert job_runs.succeed(turn.claim, rows)
    return rows


def attempt():
    return AccessAttempt.objects.create(username="olga", ip_address="192.0.2.7", failures_since_start=1)


def session():
    return Session.objects.create(session_key="s" * 32, session_data="", expire_date=clock.now())


def much_is_due():
    much_has_happened()
    for n in range(3):
        article = age(ArticleFactory(), (100 + n) * DAY)
        ClusterArticleFactory(cluster=age(ClusterFactory(article_count=1), 100 * DAY), raw_article=article)
    BriefArticleFactory(raw_article=age(ArticleFactory(), 100 * DAY))
    age(PurgedUrlFactory(), 500 * DAY)
    age(bring_to(ArtifactFactory().run, "succeeded"), 40 * DAY)
    age(JobRunFactory(status="success"), 100 * DAY)
    worker = Worker.objects.create(
        name="w0", host="here", machine="m", pid=1, pid_started=1, boot_id="old", version="0",
        started_at="2020-01-01T00:00Z", heartbeat_at="2020-01-02T00:00Z",
    )  # fmt: skip
    for row in (KeptAnswerFactory(), AuditEntryFactory(), attempt(), session()):
        age(row, 500 * DAY)
    document = age(DocumentFactory(status="processed", file=""), 40 * DAY)
    write(document.workspace, document_retention_days=30)
    return worker


def test_it_is_declared_with_everything_said():
    assert RETENTION in all_jobs()
    assert (RETENTION.name, RETENTION.cron, RETENTION.time_zone) == ("retention_cleanup", "20 3 * * *", "UTC")
    assert (RETENTION.coalesce, RETENTION.max_runtime) == (True, timedelta(minutes=60))
    assert RETENTION.misfire_grace >= timedelta(hours=1)


def test_all_that_is_due_goes_and_is_counted():
    worker = much_is_due()

    with capture_logs() as logs:
        rows = clean_up()

    (told,) = [each for each in logs if each["event"] == "retention.done"]
    assert {table: told[table] for table in told if table not in ("event", "log_level", "job_run")} == {
        "raw_articles": 3,
        "cluster_articles": 3,
        "tombstones_set": 3,
        "event_clusters": 3,
        "purged_urls": 1,
        "artifacts": 1,
        "events": told["events"],
        "workers": 1,
        "documents": 1,
        "environments": 0,
        "api_kept_answers": 1,
        "audit_entries": 1,
        "axes_accessattempt": 1,
        "django_session": 1,
        "longest_seconds": told["longest_seconds"],
    }
    assert rows == 3 + 3 + 3 + 1 + 1 + told["events"] + 1 + 1 + 4
    assert (RawArticle.objects.count(), PurgedUrl.objects.count(), EventCluster.objects.count()) == (1, 3, 1)
    assert not Worker.objects.filter(pk=worker.pk).exists()


def test_it_is_done_again_without_any_effect():
    much_is_due()
    clean_up()

    assert clean_up() == 0


def test_only_rows_of_tables_that_are_allowed_are_deleted(settings):
    much_is_due()

    with CaptureQueriesContext(connection) as queries:
        clean_up()

    deleted = {found[1] for query in queries if (found := re.match(r'DELETE FROM "(\w+)"', query["sql"]))}
    allowed = {apps.get_model(label)._meta.db_table for label in settings.PURGE_ALLOWED}
    # The children of rows that stay: events and artifacts of runs, slots and workers, and the contents of documents.
    contents = {"document_chunks", "document_fields", "document_problems", "field_corrections", "cell_corrections"}
    of_rows_that_stay = {"events", "artifacts", *contents}
    # Another job deletes the deliveries of webhooks.
    assert deleted - of_rows_that_stay == allowed - {"webhook_deliveries"}
    immutable = {apps.get_model(label)._meta.db_table for label in settings.IMMUTABLE}
    assert not deleted & immutable


def test_everything_that_must_hold_holds_afterwards():
    much_is_due()

    clean_up()

    assert_all_hold()


def test_who_is_stopped_on_the_way_has_lost_nothing_and_the_next_one_goes_on(monkeypatch):
    monkeypatch.setattr(pruning, "FEWEST", 1)
    monkeypatch.setattr(pruning, "FIRST", 1)
    monkeypatch.setattr(pruning, "MOST", 1)
    for n in range(4):
        age(ArticleFactory(), (100 + n) * DAY)
    turn, batches = turn_of(RETENTION), cleanup._batches

    def stopping(actor):
        for n, batch in enumerate(batches(actor)):
            yield batch
            turn.claim.stopping.set() if n == 0 else None

    monkeypatch.setattr(cleanup, "_batches", stopping)
    with capture_logs() as logs, pytest.raises(Interrupted, match=WORKER_STOPPING):
        RETENTION.function(turn)

    assert RawArticle.objects.count() == PurgedUrl.objects.count() == 2
    assert [each["raw_articles"] for each in logs if each["event"] == "retention.done"] == [2]
    monkeypatch.setattr(cleanup, "_batches", batches)
    job_runs.fail(turn.claim, "stopped")
    clean_up()
    assert (RawArticle.objects.count(), PurgedUrl.objects.count()) == (0, 4)


def test_a_slot_that_has_had_its_time_ends_and_what_it_has_done_stays():
    age(ArticleFactory(), 100 * DAY)
    turn = turn_of(RETENTION)
    turn.until = time.monotonic()

    with pytest.raises(JobFailed, match="the next slot continues"):
        RETENTION.function(turn)

    assert RawArticle.objects.count() == 1


def test_every_policy_says_for_how_long_and_what_is_due():
    RunFactory(status="failed")

    assert {policy.name: policy.keeps() for policy in all_policies()} == {
        "articles": "90 days",
        "clusters without articles": "90 days",
        "tombstones": "400 days",
        "run history": "succeeded 30 days",
        "job run history": "success 90 days",
        "workers": "365 days",
        "environments": "14 days",
        "answers to creating requests": "24 hours",
        "audit log": "400 days",
        "failed sign-ins": "30 days",
        "sessions": "until they expire",
    }
    assert {policy.due().rows for policy in all_policies()} == {0}
