"""Rows of every kind for a process to die in, and a worker that finishes all of them afterwards."""

from collections import defaultdict
from datetime import timedelta
from uuid import uuid4

from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import models
from django.test import override_settings

from builds import lifecycle as builds
from builds.models import Configuration
from documents import learning, retention, retyping, sender_updates, senders
from documents import lifecycle as documents
from documents.corrections import correct
from documents.models import DocumentProcessingJob, Retyping, SenderUpdate
from feeds.briefs.job import DAILY_BRIEF
from feeds.briefs.publishing import publish
from feeds.checking import check
from feeds.clustering import links
from feeds.clustering.job import EVENT_CLUSTERING
from feeds.models import FeedSource, RawArticle
from feeds.retention.cleanup import all_policies
from runs import gates, processing_gates
from runs import lifecycle as runs
from runs.models import Run
from schedules import firing, history, job_runs, requests
from schedules import handler as job_lane
from schedules.jobs import JobContext
from schedules.models import ScheduledJob
from tests.documents.taught import arrive
from tests.factories import (
    MOVES,
    W2,
    ArticleFactory,
    ArtifactFactory,
    BriefArticleFactory,
    BuildFactory,
    ClusterArticleFactory,
    ClusterFactory,
    ConfigurationFactory,
    DocumentChunkFactory,
    DocumentFactory,
    FeedFactory,
    RunFactory,
    WorkspaceFactory,
    age,
    bring_to,
    expire_lease,
    write,
)
from tests.feeds import servers
from tests.feeds.samples import item, rss
from tests.schedules.declared import EACH, each
from tests.webhooks.told import follow, send_all
from webhooks import hooks
from webhooks.models import Delivery, WebhookTail
from work import clock, recovery
from work.models import Work
from work.work_types import all_work_types

RETENTION_DAYS = 30
DUE = ("first", "second")
SLOTS_OF = timedelta(minutes=40)
FEED_NETWORK = "127.0.0.0/8"
# The numbers of the articles in each feed, by its path.
URLS = {"/first.xml": range(1, 6), "/second.xml": range(4, 9)}
LONG_AGO = 100 * 24 * 3600
# The value of `ADE_KEEP_RUNS`.
KEEP_RUNS = "succeeded=30"
OLD_NEWS = "Bridge opened"
# The numbers of the invoices of one sender.
NUMBERS = ("4711", "4712", "4713", "4714", "4715")
RECEIVED, JUDGED_AGAIN = "received.pdf", 5


def create():
    """Create runs that wait for other runs, for a build and for a new document, and one that has lost its worker."""
    workspace = WorkspaceFactory()
    ready, unready = (ConfigurationFactory(workspace=workspace, name=name) for name in ("ready", "unready"))
    BuildFactory(configuration=ready, status="ready")
    names = ("contract.pdf", "letter.pdf", "lost.pdf")
    papers = [DocumentFactory(workspace=workspace, name=name, status="processed") for name in names]
    contract, letter, lost = papers
    expire_lease(RunFactory(configuration=ready, input_document=lost, status="running", owner="w0@here:1:gone"))
    runs.submit_many(ready, [contract, contract, letter], actor="olga")
    runs.submit(unready, letter, actor="olga")
    values = {"content_type": "application/pdf", "size_bytes": 1, "sha256": "0" * 64}
    new = documents.add_document(workspace, {"name": "new.pdf", "file": "new", **values})
    runs.submit(ready, new, actor="olga")
    _create_what_is_due_to_be_purged(workspace)
    _create_slots_that_are_due()
    _create_what_a_brief_tells()


def create_articles():
    """Create articles about two events: one has a cluster already, with an article that does not belong there."""
    quake = [
        ArticleFactory(title=title)
        for title in ("Strong earthquake shakes northern Chile", "Earthquake in Chile: power cut in the north")
    ]
    panda = [ArticleFactory(title=f"Panda twins born in Vienna zoo, {n} kg") for n in range(2)]
    cluster = ClusterFactory(article_count=2)
    for article in (quake[0], panda[0]):
        ClusterArticleFactory(cluster=cluster, raw_article=article)
    links.refresh([cluster.pk])


def events_told():
    """Return the URLs of the articles of each event."""
    told = defaultdict(set)
    for url, title in RawArticle.objects.values_list("url", "title"):
        told[next((word for word in ("Panda", "Chile") if word in title), "")].add(url)
    return told


def create_feeds(server):
    """Create two feeds with some common articles, and make all other feeds not due."""
    FeedSource.objects.update(next_check_at=clock.now() + timedelta(days=1))
    for path, numbers in URLS.items():
        stories = [item(f"Story {number}", f"https://aster.example/{number}") for number in numbers]
        FeedFactory(url=server.on(path, servers.serving(rss(*stories), etag='"1"')))


def create_webhook(server, settings):
    """Create a webhook for documents, and process a document afterwards."""
    settings.ADE_WEBHOOK_NETWORKS = [FEED_NETWORK]
    server.on("/hook", servers.answering())
    workspace = WorkspaceFactory()
    hooks.add(workspace, "all", server.url("/hook"), ["document.processed"], actor="olga")
    for _ in range(2):
        DocumentFactory(workspace=workspace, status="processed")


def create_what_is_learned():
    """Create invoices of one sender, a correction to learn from, and the order to apply it to all of them. Documents of
    nobody have become invoices.
    """
    workspace = WorkspaceFactory()
    invoices = [arrive(workspace, number=number) for number in NUMBERS]
    correct(invoices[0].pk, "invoice_number", NUMBERS[0], actor="olga")
    senders.update_documents(invoices[0].sender_id, applied_by="olga")
    for _ in range(JUDGED_AGAIN):
        DocumentFactory(workspace=workspace, name=RECEIVED, status="processed", type="invoice")
    retyping.begin(workspace.pk, "invoice")


def finish_learning():
    learning.learn_due(W2)
    for rows, advance in ((SenderUpdate.objects, sender_updates.advance), (Retyping.objects, retyping.advance)):
        while rows.exists():
            advance(W2)


def finish_webhooks():
    follow(W2)
    Delivery.objects.filter(status="queued").update(next_attempt_at=clock.now())
    send_all(W2)


def served_feeds():
    return FeedSource.objects.filter(url__startswith="http://127.0.0.1")


def urls_of(feed):
    return [f"https://aster.example/{number}" for number in URLS[f"/{feed.url.rpartition('/')[2]}"]]


def _create_slots_that_are_due():
    history.declare(each, actor="w0")
    row = ScheduledJob.objects.get(name=each.name)
    write(row, decided_until=row.created_at - SLOTS_OF)


def _create_what_is_due_to_be_purged(workspace):
    for name in DUE:
        file = default_storage.save(f"documents/2024/01/{uuid4().hex}", ContentFile(b"Dear Olga"))
        old = DocumentFactory(workspace=workspace, name=name, status="processed", file=file)
        DocumentChunkFactory(document=old)
        age(write(old, text="Dear Olga"), (RETENTION_DAYS + 1) * 24 * 3600)
    write(workspace, document_retention_days=RETENTION_DAYS)


def _create_what_a_brief_tells():
    bridge = ClusterFactory(title="Bridge closed", article_count=2)
    a_minute_ago = clock.now() - timedelta(minutes=1)
    for _ in range(2):
        ClusterArticleFactory(cluster=bridge, raw_article__seen_at=a_minute_ago, linked_at=a_minute_ago)


def create_what_is_kept_no_longer():
    """Create expired rows: articles in a cluster (one in a brief), an empty cluster, and a run with an artifact."""
    cluster = ClusterFactory(title="three", article_count=3)
    for name in ("first", "second", "named"):
        article = age(ArticleFactory(url=f"https://news.example.com/{name}"), LONG_AGO)
        age(ClusterArticleFactory(cluster=cluster, raw_article=article), LONG_AGO)
    told_at = clock.now() - timedelta(days=90)
    BriefArticleFactory(raw_article=article, item__headline=OLD_NEWS, item__brief__scheduled_for=told_at)
    age(ClusterFactory(title="empty"), LONG_AGO)
    run = RunFactory(configuration=Configuration.objects.get(name="ready"), status="running")
    key = default_storage.save(f"runs/{run.pk}/1/0001", ContentFile(b"{}"))
    ArtifactFactory(run=run, name="old.json", file=key)
    age(bring_to(run, "succeeded"), LONG_AGO)


def let_time_pass():
    """Expire all leases, and make all postponed work due."""
    past = clock.now() - timedelta(seconds=1)
    for model in MOVES:
        if issubclass(model, Work) and model.CLAIMED:
            models.QuerySet(model).filter(status=model.CLAIMED).update(lease_expires_at=past)
    WebhookTail.objects.update(expires_at=past)
    DocumentProcessingJob.objects.filter(status="PENDING").update(next_attempt_at=past)


def finish_everything():
    publish_the_next_brief()
    for _ in range(20):
        let_time_pass()
        recovery.rescue_expired(all_work_types(), W2)
        while claim := builds.claim_next_build(W2):
            builds.succeed(claim)
        runs.apply_build_results(W2)
        runs.apply_processing_failures(W2)
        processing_gates.mend()
        gates.open_forgotten()
        while claim := runs.claim_next_run(W2):
            runs.succeed(claim)
        finish_documents()
        purge_what_is_due()
        finish_slots()
        finish_clusters()
        finish_feeds()
        finish_webhooks()
        finish_learning()
        for policy in all_policies():
            list(policy.purge(W2))
        if not (Run.objects.live().exists() or DocumentProcessingJob.objects.live().exists()):
            return


def publish_the_next_brief():
    """Publish in a slot that no life has claimed."""
    slot = clock.now().replace(microsecond=1) + timedelta(minutes=1)
    claim = job_runs.claim_slot(DAILY_BRIEF.name, slot, W2)
    assert job_runs.succeed(claim, publish(JobContext(DAILY_BRIEF, slot, claim)))


def purge_what_is_due():
    """Each call has a time limit, which on a busy machine allows one document."""
    for _ in DUE:
        retention.purge_due(W2)


def finish_documents():
    advance_documents()
    while claim := documents.claim_stage(W2):
        documents.finish_stage(claim)
    settle_documents()


def finish_clusters():
    """Skip this slow step unless only clustering is left to do."""
    if len(events_told()) == 1:
        return
    requests.run_now(EVENT_CLUSTERING, actor=W2)
    while claim := job_lane.claim(W2):
        job_lane.succeed(claim, job_lane.do(claim))


def finish_slots():
    with override_settings(JOBS=[EACH]):
        firing.fire(each, actor=W2)
        while claim := job_lane.claim(W2):
            job_lane.succeed(claim, 0)


def finish_feeds():
    with override_settings(ADE_FEED_NETWORKS=[FEED_NETWORK]):
        for feed in served_feeds():
            check(feed, actor=W2)


def advance_documents():
    while documents.begin_next_job(W2):
        pass
    for job in DocumentProcessingJob.objects.filter(status="PROCESSING"):
        documents.plan(job.pk, 2, actor=W2)
        documents.advance(job.pk, actor=W2)


def settle_documents():
    for job in DocumentProcessingJob.objects.filter(status="PROCESSING"):
        documents.settle(job, actor=W2)
