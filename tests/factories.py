"""Factories of rows. A row in any status has come there by legal moves, with their events:
`RunFactory(status="failed")`.

`bring_to` makes the moves, `force_status` skips them, `age` and `expire_lease` let time pass, and `claim_of` returns
the claim of a worker on a claimed row.
"""

import secrets
import time
from datetime import timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractUser
from django.db import models, transaction
from factory.declarations import LazyAttribute, LazyAttributeSequence, LazyFunction, SelfAttribute, Sequence, SubFactory
from factory.django import DjangoModelFactory, Password

from api.models import ApiToken, AuditEntry, KeptAnswer
from builds import fingerprint
from builds.models import Build, Configuration
from documents import followers, tables
from documents.models import (
    CellCorrection,
    Document,
    DocumentChunk,
    DocumentField,
    DocumentProblem,
    DocumentProcessingJob,
    DocumentTable,
    DocumentType,
    DocumentTypeField,
    FieldCorrection,
    LessonEvidence,
    Sender,
    SenderIdentity,
    SenderLesson,
    SenderUpdate,
    Stage,
)
from documents.models.fields import UNSURE_BELOW
from feeds.lifecycle import FEED_STATES
from feeds.models import (
    Brief,
    BriefArticle,
    BriefItem,
    ClusterArticle,
    EventCluster,
    FeedSource,
    PurgedUrl,
    RawArticle,
)
from runs import gates
from runs.models import Artifact, Queue, Run, RunField
from runs.queue import QUEUE_STATES
from schedules.models import DueSlot, JobRun, ScheduledJob
from tests.testwork.models import Errand
from webhooks import signing
from webhooks.lifecycle import WEBHOOK_STATES
from webhooks.models import Delivery, Webhook
from work import clock, lifecycle
from work.claims import Claim, LeaseHolder
from work.models import Event, Work
from work.state_machine import By
from work.work_types import all_work_types, other_subjects
from workspaces.models import Membership, Workspace

W1 = "w1@here:101:boot1"
W2 = "w2@here:102:boot2"
LEASE = timedelta(seconds=30)
MOVES = {kind.states.model: kind.states for kind in all_work_types()}
SUBJECTS = MOVES | {states.model: states for states in other_subjects()}
# The columns that constraints require in addition to the common ones.
MUST_SAY = {
    (Delivery, "delivered"): {"answered": 204},
    (Delivery, "failed"): {"failure_type": "ATTEMPTS_EXHAUSTED", "error_message": "nobody answered"},
    (Run, "failed"): {"failure_type": "ENGINE_FAILED", "error_message": "the engine failed"},
    (Build, "failed"): {"failure_type": "BUILD_FAILED", "error_message": "no such package"},
    (Stage, "ERROR"): {"failure_type": "EXTRACTION_FAILED", "error_message": "no text"},
    (DocumentProcessingJob, "FAILED"): {
        "failure_type": "ATTEMPTS_EXHAUSTED",
        "attempts": 3,
        "error_log": "attempt 3: no text\n",
        "error_message": "no text",
    },
}


def must_say(model, status):
    """Return the columns that a move to this status must set in addition to the common ones."""
    said = {"failure_type": ""} if issubclass(model, Work) else {}
    if (model, status) == (DocumentProcessingJob, "COMPLETED"):
        said["completed_at"] = clock.now()
    return said | MUST_SAY.get((model, status), {})


def holder_for(row, move):
    """Return the holder of the row if the move requires one."""
    now = type(row)._base_manager.get(pk=row.pk)
    return LeaseHolder(now.lease_owner, now.claim_token) if move.by is By.HOLDER else None


def bring_to(row, status, owner=W1):
    """Take the shortest path of moves, without the checks of the app's verbs."""
    for verb in verbs_between(MOVES[type(row)], row.status, status):
        move = MOVES[type(row)][verb]
        said = must_say(type(row), move.target)
        assert lifecycle.move(MOVES[type(row)], row.pk, verb, holder=holder_for(row, move), actor=owner, **said)
    row.refresh_from_db()
    return row


def verbs_between(states, origin, target):
    paths = {origin: []}
    for status in (queue := [origin]):
        for verb in states:
            to = states[verb].target
            if status in states[verb].origins and to not in paths:
                paths[to] = [*paths[status], verb]
                queue.append(to)
    return paths[target]


def force_status(row, status, owner=W1, **columns):
    """Write the columns of a row in this status without moves or events; for arranging only."""
    now = clock.now()
    values = {"status": status, **must_say(type(row), status)}
    if isinstance(row, Work):
        claimed, ended = status == row.CLAIMED, status in row.TERMINAL
        values |= {
            "lease_owner": owner if claimed else None,
            "lease_expires_at": now + LEASE if claimed else None,
            "claim_token": max(row.claim_token, 1) if claimed else row.claim_token,
            "started_at": max(now, row.created_at) if ended or status == row.ACTIVE else None,
            "finished_at": max(now, row.created_at) if ended else None,
        }
    if isinstance(row, DocumentProcessingJob):
        values.setdefault("completed_at", None)
    return write(row, **(values | columns))


def end_processing(document, status="processed"):
    """End the processing of a document, and its job if it has one, with everything that follows from it."""
    with transaction.atomic():
        for job in DocumentProcessingJob.objects.live().filter(document=document):
            bring_to(job, {"processed": "COMPLETED", "failed": "FAILED"}[status])
        bring_to(document, status)
        followers.notify(document.pk, status)
    return document


def write(row, **columns):
    """Write columns past all guards except the database's own constraints."""
    assert models.QuerySet(type(row)).filter(pk=row.pk).update(**columns) == 1
    row.refresh_from_db()
    return row


def copies_of(row, number):
    """Insert this many copies of the row, without events."""
    columns = {
        field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields if not field.primary_key
    }
    return type(row)._base_manager.bulk_create([type(row)(**columns) for _ in range(number)], batch_size=500)


def age(row, seconds):
    """Move all timestamps of the row back by this many seconds."""
    by = timedelta(seconds=seconds)
    moments = [f.attname for f in row._meta.concrete_fields if isinstance(f, models.DateTimeField)]
    return write(row, **{name: moment - by for name in moments if (moment := getattr(row, name)) is not None})


def expire_lease(row, seconds=1):
    return write(row, lease_expires_at=clock.now() - timedelta(seconds=seconds))


def claim_of(row, **holder):
    """Return a claim on this row with its current holder, or with `owner` and `token`."""
    held = LeaseHolder(holder.get("owner", row.lease_owner), holder.get("token", row.claim_token))
    values = {f.attname: getattr(row, f.attname) for f in row._meta.concrete_fields}
    return Claim(MOVES[type(row)], row.pk, held, time.monotonic() + 24, values)


def columns_of(row):
    """Return every column from the database, for comparisons before and after."""
    return type(row)._base_manager.filter(pk=row.pk).values().get()


def and_told(before, row, number=1):
    """Return the columns of a row that has this many more events and is otherwise unchanged. With None, any number."""
    number = events_of(row).last().sequence - before["last_sequence"] if number is None else number
    return before | {"last_sequence": before["last_sequence"] + number, "last_event_at": events_of(row).last().at}


def events_of(row):
    return Event.objects.filter(subject_kind=SUBJECTS[type(row)].kind, subject_id=row.pk).order_by("sequence")


def told(row):
    """Return the kinds of this row's events, in order."""
    return list(events_of(row).values_list("kind", flat=True))


class WorkspaceFactory(DjangoModelFactory[Workspace]):
    name = Sequence(lambda n: f"workspace {n}")

    class Meta:
        model = Workspace


class UserFactory(DjangoModelFactory[AbstractUser]):
    username = Sequence(lambda n: f"user{n}")
    password = Password("secret")

    class Meta:
        model = get_user_model()


class MembershipFactory(DjangoModelFactory[Membership]):
    workspace = SubFactory(WorkspaceFactory)
    user = SubFactory(UserFactory)
    role = "viewer"

    class Meta:
        model = Membership


class ConfigurationFactory(DjangoModelFactory[Configuration]):
    workspace = SubFactory(WorkspaceFactory)
    name = Sequence(lambda n: f"configuration {n}")
    files = LazyFunction(lambda: {"main.py": "def main(document):\n    return {}\n"})

    class Meta:
        model = Configuration


class SubjectFactory(DjangoModelFactory[Any]):
    """Creates the row as the lifecycle does, and brings it to `status` as `owner`."""

    status = None
    owner = W1

    class Meta:
        abstract = True

    @classmethod
    def _create(cls, model_class, *args, **values):
        status, owner = values.pop("status"), values.pop("owner")
        states = MOVES[model_class]
        columns = {model_class._meta.get_field(name).attname: getattr(v, "pk", v) for name, v in values.items()}
        (id,) = lifecycle.create(states, columns, actor="factory")
        row = model_class._base_manager.get(pk=id)
        return bring_to(row, status, owner) if status and status != row.status else row


class DocumentFactory(SubjectFactory):
    """Has no processing job: use JobFactory for one, or documents.lifecycle.add_document for both."""

    workspace = SubFactory(WorkspaceFactory)
    name = Sequence(lambda n: f"document {n}.pdf")
    file = Sequence(lambda n: f"documents/{n}")
    content_type = "application/pdf"
    size_bytes = 1000
    # Random: previews are kept under it, in a directory that all processes of pytest share.
    sha256 = LazyFunction(lambda: secrets.token_hex(32))

    class Meta:
        model = Document


class DocumentChunkFactory(DjangoModelFactory[DocumentChunk]):
    document = SubFactory(DocumentFactory)
    workspace = SelfAttribute("document.workspace")
    position = LazyAttribute(lambda o: DocumentChunk.objects.filter(document=o.document).count())
    page = 1
    text = "A piece of text."

    class Meta:
        model = DocumentChunk


class DocumentFieldFactory(DjangoModelFactory[DocumentField]):
    document = SubFactory(DocumentFactory)
    name = Sequence(lambda n: f"field {n}")
    value = "42"
    confidence = 0.9
    to_review = LazyAttribute(lambda o: o.confidence is not None and o.confidence < UNSURE_BELOW)

    class Meta:
        model = DocumentField


class DocumentProblemFactory(DjangoModelFactory[DocumentProblem]):
    document = SubFactory(DocumentFactory)
    code = "sum_is_wrong"
    message = "Net 10.00 EUR and tax 1.90 EUR do not add up to 12.00 EUR."

    class Meta:
        model = DocumentProblem


class DocumentTypeFactory(DjangoModelFactory[DocumentType]):
    workspace = SubFactory(WorkspaceFactory)
    name = Sequence(lambda n: f"type_{n}")
    label = LazyAttribute(lambda o: o.name.replace("_", " ").capitalize())

    class Meta:
        model = DocumentType


class DocumentTypeFieldFactory(DjangoModelFactory[DocumentTypeField]):
    type = SubFactory(DocumentTypeFactory)
    name = Sequence(lambda n: f"field {n}")

    class Meta:
        model = DocumentTypeField


class FieldCorrectionFactory(DjangoModelFactory[FieldCorrection]):
    document = SubFactory(DocumentFactory)
    name = Sequence(lambda n: f"field {n}")
    value = "43"
    corrected_by = "olga"

    class Meta:
        model = FieldCorrection


def table_of(document, *texts, name="table_1", columns=None, **values):
    """Store a table with these texts; the first row has the labels of the columns."""
    labels, *rows = texts or (["Article", "Price"], ["Apples", "1.50"], ["Pears", "2.00"])
    columns = columns or [{"name": label.lower(), "label": label, "kind": "text"} for label in labels]
    cells = [[{"text": text} if isinstance(text, str) else text for text in row] for row in rows]
    tables.keep(document.pk, tables.lines([{"name": name, "columns": columns, "rows": cells, **values}]))
    return DocumentTable.objects.get(document=document, name=name)


class DocumentTableFactory(DjangoModelFactory[DocumentTable]):
    document = SubFactory(DocumentFactory)
    name = Sequence(lambda n: f"table_{n}")
    columns = [{"name": "article", "label": "Article", "kind": "text"}]
    row_count = 0

    class Meta:
        model = DocumentTable


class CellCorrectionFactory(DjangoModelFactory[CellCorrection]):
    document = SubFactory(DocumentFactory)
    table = "table_1"
    row = Sequence(lambda n: n + 1)
    column = "article"
    text = "Plums"
    corrected_by = "olga"

    class Meta:
        model = CellCorrection


class SenderFactory(DjangoModelFactory[Sender]):
    workspace = SubFactory(WorkspaceFactory)
    name = Sequence(lambda n: f"Supplier {n} Ltd")

    class Meta:
        model = Sender


class SenderIdentityFactory(DjangoModelFactory[SenderIdentity]):
    sender = SubFactory(SenderFactory)
    workspace = SelfAttribute("sender.workspace")
    kind = "iban"
    value = Sequence(lambda n: f"DE{n:020}")

    class Meta:
        model = SenderIdentity


class SenderLessonFactory(DjangoModelFactory[SenderLesson]):
    sender = SubFactory(SenderFactory)
    field = "invoice_number"
    method = LazyFunction(lambda: {"kind": "number", "left": ["beleg"], "end": True})

    class Meta:
        model = SenderLesson


class LessonEvidenceFactory(DjangoModelFactory[LessonEvidence]):
    lesson = SubFactory(SenderLessonFactory)
    document = SubFactory(DocumentFactory)
    is_right = True

    class Meta:
        model = LessonEvidence


class SenderUpdateFactory(DjangoModelFactory[SenderUpdate]):
    sender = SubFactory(SenderFactory)
    below = 2**63 - 1

    class Meta:
        model = SenderUpdate


class JobFactory(SubjectFactory):
    document = SubFactory(DocumentFactory)
    max_attempts = 3

    class Meta:
        model = DocumentProcessingJob


class StageFactory(SubjectFactory):
    job = SubFactory(JobFactory, status="PROCESSING")
    name = "extract"
    segment = LazyAttribute(lambda o: Stage.objects.filter(job=o.job, name=o.name).count())

    class Meta:
        model = Stage


class BuildFactory(SubjectFactory):
    configuration = SubFactory(ConfigurationFactory)
    fingerprint = LazyAttribute(lambda o: fingerprint.of_build(o.configuration.contents_sha256))
    snapshot = LazyAttribute(lambda o: o.configuration.snapshot())

    class Meta:
        model = Build


class RunFactory(SubjectFactory):
    """Has a ready build and a processed document by default, and the gate that a submission would set."""

    configuration = SubFactory(ConfigurationFactory)
    workspace = SelfAttribute("configuration.workspace")
    input_document = SubFactory(DocumentFactory, workspace=SelfAttribute("..workspace"), status="processed")
    waits_for_processing = True
    build = LazyAttribute(lambda o: _build_of(o.configuration))  # type: ignore[assignment]  # a column, not the method
    gate = LazyAttribute(
        lambda o: _gate_of(o.status or "queued", o.build, o.input_document, waiting=o.waits_for_processing)
    )

    class Meta:
        model = Run


class ArtifactFactory(DjangoModelFactory[Artifact]):
    run = SubFactory(RunFactory, status="running")
    name = Sequence(lambda n: f"result {n}.json")
    file = Sequence(lambda n: f"artifacts/{n}")
    size_bytes = 2
    # Random: previews are kept under it, in a directory that all processes of pytest share.
    sha256 = LazyFunction(lambda: secrets.token_hex(32))
    content_type = "application/json"

    class Meta:
        model = Artifact


class RunFieldFactory(DjangoModelFactory[RunField]):
    run = SubFactory(RunFactory, status="running")
    position = LazyAttribute(lambda o: RunField.objects.filter(run=o.run).count())
    name = Sequence(lambda n: f"field {n}")
    value = "42"

    class Meta:
        model = RunField


class QueueFactory(DjangoModelFactory[Queue]):
    """The single row of the queue, not paused."""

    id = Queue.ONLY

    class Meta:
        model = Queue

    @classmethod
    def _create(cls, model_class, *args, **values):
        if not model_class.objects.exists():
            lifecycle.create(QUEUE_STATES, values, actor="factory")
        return model_class.objects.get()


class JobRunFactory(SubjectFactory):
    job_name = Sequence(lambda n: f"job{n}")
    scheduled_for = LazyFunction(lambda: clock.now().replace(second=0, microsecond=0))
    created_at = LazyFunction(lambda: clock.now())
    started_at = SelfAttribute("created_at")
    worker_instance = SelfAttribute("owner")
    lease_owner = SelfAttribute("owner")
    lease_expires_at = LazyAttribute(lambda o: o.started_at + LEASE)
    claim_token = 1

    class Meta:
        model = JobRun


class ScheduledJobFactory(DjangoModelFactory[ScheduledJob]):
    name = Sequence(lambda n: f"job{n}")
    cron = "*/15 * * * *"
    time_zone = "UTC"
    decided_until = LazyFunction(lambda: clock.now())

    class Meta:
        model = ScheduledJob


class DueSlotFactory(DjangoModelFactory[DueSlot]):
    job_name = Sequence(lambda n: f"job{n}")
    scheduled_for = LazyFunction(lambda: clock.now().replace(second=0, microsecond=0))

    class Meta:
        model = DueSlot


class FeedFactory(DjangoModelFactory[FeedSource]):
    url = Sequence(lambda n: f"https://news{n}.example.com/feed.xml")
    title = Sequence(lambda n: f"News {n}")

    class Meta:
        model = FeedSource

    @classmethod
    def _create(cls, model_class, *args, **values):
        (id,) = lifecycle.create(FEED_STATES, values, actor="factory")
        return FeedSource.objects.get(pk=id)


class ArticleFactory(DjangoModelFactory[RawArticle]):
    feed = SubFactory(FeedFactory)
    url = Sequence(lambda n: f"https://news.example.com/articles/{n}")
    original_url = SelfAttribute("url")
    title = Sequence(lambda n: f"Headline {n}")
    seen_at = LazyFunction(lambda: clock.now())
    happened_at = SelfAttribute("seen_at")

    class Meta:
        model = RawArticle


class PurgedUrlFactory(DjangoModelFactory[PurgedUrl]):
    digest = Sequence(lambda n: f"{n:064x}")

    class Meta:
        model = PurgedUrl


class ClusterFactory(DjangoModelFactory[EventCluster]):
    title = Sequence(lambda n: f"Event {n}")
    first_at = LazyFunction(lambda: clock.now())
    last_at = SelfAttribute("first_at")

    class Meta:
        model = EventCluster


class ClusterArticleFactory(DjangoModelFactory[ClusterArticle]):
    """Creates only the link: the caller updates the count of the cluster."""

    cluster = SubFactory(ClusterFactory)
    raw_article = SubFactory(ArticleFactory)

    class Meta:
        model = ClusterArticle


class BriefFactory(DjangoModelFactory[Brief]):
    scheduled_for = Sequence(lambda n: clock.now().replace(microsecond=0) + timedelta(days=n))
    name = LazyAttributeSequence(lambda o, n: f"{o.scheduled_for:%Y-%m-%d}-{n}")
    window_from = LazyAttribute(lambda o: o.scheduled_for - timedelta(days=1))
    window_until = SelfAttribute("scheduled_for")
    articles_seen = feeds_seen = clusters_seen = 1

    class Meta:
        model = Brief


class BriefItemFactory(DjangoModelFactory[BriefItem]):
    brief = SubFactory(BriefFactory)
    position = Sequence(lambda n: n)
    cluster = SubFactory(ClusterFactory)
    headline = "Bridge closed"
    article_count = 2
    score = 1.0

    class Meta:
        model = BriefItem


class BriefArticleFactory(DjangoModelFactory[BriefArticle]):
    item = SubFactory(BriefItemFactory)
    position = Sequence(lambda n: n)
    raw_article = SubFactory(ArticleFactory)
    url = SelfAttribute("raw_article.url")
    title = SelfAttribute("raw_article.title")
    source = SelfAttribute("raw_article.feed.title")
    happened_at = SelfAttribute("raw_article.happened_at")

    class Meta:
        model = BriefArticle


class ApiTokenFactory(DjangoModelFactory[ApiToken]):
    """Creates a row without a known secret; `tokens.issue` creates a usable token."""

    workspace = SubFactory(WorkspaceFactory)
    user = SubFactory(UserFactory)
    name = Sequence(lambda n: f"nightly {n}")
    prefix = Sequence(lambda n: f"ade_{n:012x}")
    sha256 = "0" * 64
    scopes = LazyFunction(lambda: ["read"])
    created_by = SelfAttribute("user.username")

    class Meta:
        model = ApiToken


class KeptAnswerFactory(DjangoModelFactory[KeptAnswer]):
    caller = "user 1"
    key = Sequence(lambda n: f"key {n}")
    fingerprint = "0" * 64
    answered = 201
    body = "{}"

    class Meta:
        model = KeptAnswer


class AuditEntryFactory(DjangoModelFactory[AuditEntry]):
    actor = "olga"
    workspace = SubFactory(WorkspaceFactory)
    address = "192.0.2.7"
    method = "POST"
    operation = "runs.submit"
    path = "/configurations/1/runs"
    answered = 201

    class Meta:
        model = AuditEntry


class WebhookFactory(DjangoModelFactory[Webhook]):
    workspace = SubFactory(WorkspaceFactory)
    name = Sequence(lambda n: f"hook {n}")
    url = Sequence(lambda n: f"https://hooks{n}.example.com/ade")
    topics = LazyFunction(lambda: ["run.succeeded", "run.failed"])
    salt = LazyFunction(signing.new_salt)
    secret_sha256 = LazyAttribute(lambda o: signing.hash_of(signing.secret_of(o.salt)))
    created_by = "factory"

    class Meta:
        model = Webhook

    @classmethod
    def _create(cls, model_class, *args, **values):
        columns = {model_class._meta.get_field(name).attname: getattr(v, "pk", v) for name, v in values.items()}
        (id,) = lifecycle.create(WEBHOOK_STATES, columns, actor="factory")
        return Webhook.objects.get(pk=id)


class DeliveryFactory(SubjectFactory):
    webhook = SubFactory(WebhookFactory)
    topic = "run.succeeded"
    event_id = Sequence(lambda n: 10_000 + n)
    payload = LazyAttribute(lambda o: {"event": o.event_id, "topic": o.topic})

    class Meta:
        model = Delivery


class ErrandFactory(SubjectFactory):
    class Meta:
        model = Errand


def _build_of(configuration):
    wanted = fingerprint.of_build(configuration.contents_sha256)
    found = Build.objects.filter(configuration=configuration, fingerprint=wanted).first()
    return found or BuildFactory(configuration=configuration, status="ready")


def _gate_of(status, build, document, *, waiting):
    if status != "queued":
        return ""
    return gates.for_new_runs([document.pk], waiting=waiting)[0] if build.status == "ready" else "build"
