"""Every constraint is broken here with SQL: a new constraint fails this file until it has a row that breaks it."""

from datetime import timedelta

import pytest
from django.apps import apps
from django.conf import settings
from django.db import IntegrityError, connection, models, transaction

from console.models import FailureNote, PromiseCheck, Visit
from documents.models import OutsideService, Retyping, TableRows
from feeds.briefs import guards
from schedules.models import SchedulerLease
from tests.factories import (
    W1,
    ApiTokenFactory,
    ArticleFactory,
    ArtifactFactory,
    AuditEntryFactory,
    BriefArticleFactory,
    BriefFactory,
    BriefItemFactory,
    BuildFactory,
    CellCorrectionFactory,
    ClusterArticleFactory,
    ClusterFactory,
    ConfigurationFactory,
    DeliveryFactory,
    DocumentChunkFactory,
    DocumentFactory,
    DocumentFieldFactory,
    DocumentProblemFactory,
    DocumentTableFactory,
    DocumentTypeFactory,
    DocumentTypeFieldFactory,
    DueSlotFactory,
    ErrandFactory,
    FeedFactory,
    FieldCorrectionFactory,
    JobFactory,
    JobRunFactory,
    KeptAnswerFactory,
    LessonEvidenceFactory,
    MembershipFactory,
    PurgedUrlFactory,
    QueueFactory,
    RunFactory,
    RunFieldFactory,
    ScheduledJobFactory,
    SenderFactory,
    SenderIdentityFactory,
    SenderLessonFactory,
    SenderUpdateFactory,
    StageFactory,
    UserFactory,
    WebhookFactory,
    WorkspaceFactory,
)
from webhooks.models import WebhookTail
from work import clock
from work.models import Event, Worker

NOW = clock.now()
EARLY, LATE = NOW - timedelta(days=1), NOW + timedelta(days=1)
FREE = {"lease_owner": None, "lease_expires_at": None}
LEASE = {"lease_owner": W1, "lease_expires_at": LATE}
# The factory of each kind of work, and a waiting, claimed and terminal status; None if it has no such status.
WORKS = {
    "run": (RunFactory, "queued", "running", "succeeded"),
    "build": (BuildFactory, "queued", "building", "ready"),
    "job": (JobFactory, "PENDING", None, "COMPLETED"),
    "stage": (StageFactory, "READY", "RUNNING", "DONE"),
    "job_run": (JobRunFactory, None, "running", "success"),
    "delivery": (DeliveryFactory, "queued", "sending", "delivered"),
    "errand": (ErrandFactory, "queued", "doing", "done"),
}


def broken(factory, status=None, /, **columns):
    """Return a function that creates a row in a status and returns the columns that break it."""
    return lambda: (factory(status=status) if status else factory(), columns)


def broken_work(kind):
    factory, waiting, claimed, terminal = WORKS[kind]
    active = claimed or "PROCESSING"
    known, lease, end, order = (
        f"{kind}_{sentence}"
        for sentence in (
            "status_is_known",
            "lease_is_set_exactly_while_claimed",
            "finished_at_is_set_exactly_at_the_end",
            "times_are_in_order",
        )
    )
    for word in ("nonsense", "", active.swapcase()):
        yield known, broken(factory, active, status=word, **FREE)
    for status in sorted({waiting, terminal, active} - {claimed, None}):
        yield lease, broken(factory, status, **LEASE)
        yield lease, broken(factory, status, lease_owner=W1)
        yield lease, broken(factory, status, lease_expires_at=LATE)
    if claimed:
        yield lease, broken(factory, claimed, **FREE)
        yield lease, broken(factory, claimed, lease_owner=None)
        yield lease, broken(factory, claimed, lease_expires_at=None)
    yield end, broken(factory, terminal, finished_at=None)
    yield end, broken(factory, active, finished_at=LATE)
    yield order, broken(factory, active, started_at=EARLY)
    yield order, broken(factory, terminal, finished_at=EARLY)


def worker(boot_id):
    own = {"name": "w1", "host": "here", "machine": "m", "pid": 1, "pid_started": 1, "boot_id": boot_id}
    return Worker.objects.create(**own, started_at=NOW, heartbeat_at=NOW)


def booted():
    return worker("boot1")


def second_event_of_a_number():
    subject = {"subject_kind": "run", "subject_id": 1, "at": NOW}
    Event.objects.create(**subject, sequence=1)
    return Event.objects.create(**subject, sequence=2), {"sequence": 1}


def second_boot_of_an_id():
    worker("b1")
    return worker("b2"), {"boot_id": "b1"}


def second_service_of_a_name():
    OutsideService.objects.create(name="a")
    return OutsideService.objects.create(name="b"), {"name": "a"}


def second_workspace_of_a_name():
    WorkspaceFactory(name="Aster")
    return WorkspaceFactory(), {"name": "Aster"}


def second_membership():
    first = MembershipFactory()
    return MembershipFactory(workspace=first.workspace), {"user_id": first.user_id}


def second_configuration_of_a_name():
    first = ConfigurationFactory()
    return ConfigurationFactory(workspace=first.workspace), {"name": first.name}


def second_live_job():
    first = JobFactory(status="PROCESSING")
    return JobFactory(), {"document_id": first.document_id}


def second_stage_of_a_segment():
    first = StageFactory()
    return StageFactory(job=first.job), {"segment": first.segment}


def second_build_of_a_fingerprint():
    first = BuildFactory()
    return BuildFactory(configuration=first.configuration, fingerprint="other"), {"fingerprint": first.fingerprint}


def second_running_run():
    first = RunFactory(status="running")
    return RunFactory(status="running"), {"input_document_id": first.input_document_id}


def second_artifact_of_a_name():
    first = ArtifactFactory()
    return ArtifactFactory(run=first.run), {"name": first.name}


def second_chunk_in_a_position():
    first = DocumentChunkFactory()
    return DocumentChunkFactory(document=first.document), {"position": first.position}


def second_value_of_a_source():
    first = DocumentFieldFactory()
    second = DocumentFieldFactory(document=first.document, name=first.name, chosen=False, source="service")
    return second, {"source": first.source}


def second_chosen_value():
    first = DocumentFieldFactory()
    second = DocumentFieldFactory(document=first.document, name=first.name, chosen=False, source="service")
    return second, {"chosen": True}


def second_type_of_a_name():
    first = DocumentTypeFactory()
    return DocumentTypeFactory(workspace=first.workspace), {"name": first.name}


def second_field_of_a_type():
    first = DocumentTypeFieldFactory()
    return DocumentTypeFieldFactory(type=first.type), {"name": first.name}


def second_retyping_of_a_type():
    first = Retyping.objects.create(workspace=WorkspaceFactory(), name="letter", below=1)
    return Retyping.objects.create(workspace=first.workspace, name="other", below=1), {"name": "letter"}


def second_table_of_a_name():
    first = DocumentTableFactory()
    return DocumentTableFactory(document=first.document), {"name": first.name}


def rows_of_a_table(**columns):
    return TableRows.objects.create(**{"table": DocumentTableFactory(), "first": 1, "rows": []} | columns)


def second_rows_of_a_table():
    first = rows_of_a_table()
    return rows_of_a_table(table=first.table, first=2), {"first": 1}


def second_correction_of_a_cell():
    first = CellCorrectionFactory()
    return CellCorrectionFactory(document=first.document), {"row": first.row}


def second_correction_of_a_field():
    first = FieldCorrectionFactory()
    return FieldCorrectionFactory(document=first.document), {"name": first.name}


def second_field_in_a_position():
    first = RunFieldFactory()
    return RunFieldFactory(run=first.run), {"position": first.position}


def second_claim_of_a_slot():
    first = JobRunFactory(status="success")
    return JobRunFactory(scheduled_for=first.scheduled_for), {"job_name": first.job_name}


def second_slot_running():
    first = JobRunFactory()
    return JobRunFactory(scheduled_for=EARLY), {"job_name": first.job_name}


def second_job_of_a_name():
    return ScheduledJobFactory(), {"name": ScheduledJobFactory().name}


def second_due_slot_of_a_moment():
    first = DueSlotFactory()
    return DueSlotFactory(scheduled_for=first.scheduled_for), {"job_name": first.job_name}


def visit(**columns):
    return Visit.objects.create(person=UserFactory()), columns


def second_visit_of_a_person():
    first = Visit.objects.create(person=UserFactory())
    return visit(person=first.person_id)


def failure_note(**columns):
    return FailureNote.objects.create(workspace=WorkspaceFactory(), cause="c", text="known", written_by="olga"), columns


def second_note_on_a_cause():
    first, _ = failure_note()
    return failure_note(workspace=first.workspace_id)


def promise_check(**columns):
    return PromiseCheck.objects.create(name=f"promise {PromiseCheck.objects.count()}"), columns


def second_check_of_a_promise():
    first, _ = promise_check()
    return promise_check(name=first.name)


def scheduler_lease():
    return SchedulerLease.objects.create(pk=SchedulerLease.ONLY, expires_at=NOW), {"id": 2}


def webhook_tail():
    return WebhookTail.objects.create(pk=WebhookTail.ONLY), {"id": 2}


def second_webhook_of_a_name():
    first = WebhookFactory()
    return WebhookFactory(workspace=first.workspace), {"name": first.name}


def second_delivery_of_an_event():
    first = DeliveryFactory()
    return DeliveryFactory(webhook=first.webhook), {"event_id": first.event_id}


def second_delivery_under_way():
    first = DeliveryFactory(status="sending")
    return DeliveryFactory(status="sending"), {"webhook_id": first.webhook_id}


def second_feed_of_a_url():
    return FeedFactory(), {"url": FeedFactory().url}


def second_article_of_a_url():
    return ArticleFactory(), {"url": ArticleFactory().url}


def second_tombstone_of_a_url():
    return PurgedUrlFactory(), {"digest": PurgedUrlFactory().digest}


def second_link_in_a_cluster():
    first = ClusterArticleFactory()
    return ClusterArticleFactory(cluster=first.cluster), {"raw_article_id": first.raw_article_id}


def second_cluster_of_an_article():
    first = ClusterArticleFactory()
    return ClusterArticleFactory(), {"raw_article_id": first.raw_article_id}


def second_brief_of_a_slot():
    return BriefFactory(), {"scheduled_for": BriefFactory().scheduled_for}


def second_brief_of_a_name():
    first = BriefFactory()
    return BriefFactory(), {"name": first.name}


def unguarded(arrange):
    """Drop the triggers of briefs, which refuse every change before a constraint could."""

    def arranged():
        guards.drop()
        return arrange()

    return arranged


def second_sender_of_an_identity():
    first = SenderIdentityFactory()
    return SenderIdentityFactory(workspace=first.workspace), {"value": first.value}


def second_evidence_of_a_document():
    first = LessonEvidenceFactory()
    return LessonEvidenceFactory(lesson=first.lesson), {"document_id": first.document_id}


def second_update_of_a_sender():
    return SenderUpdateFactory(), {"sender_id": SenderUpdateFactory().sender_id}


def second_item_in_a_position():
    first = BriefItemFactory()
    return BriefItemFactory(brief=first.brief), {"position": first.position}


def second_item_of_a_cluster():
    first = BriefItemFactory()
    return BriefItemFactory(brief=first.brief), {"cluster_id": first.cluster_id}


def second_article_in_a_position():
    first = BriefArticleFactory()
    return BriefArticleFactory(item=first.item), {"position": first.position}


def second_token_of_a_name():
    first = ApiTokenFactory()
    return ApiTokenFactory(workspace=first.workspace, user=first.user), {"name": first.name}


def second_token_of_a_prefix():
    return ApiTokenFactory(), {"prefix": ApiTokenFactory().prefix}


def second_answer_of_a_key():
    return KeptAnswerFactory(), {"key": KeptAnswerFactory().key}


BREAKING = [
    *(case for kind in WORKS for case in broken_work(kind)),
    ("event_sequence_has_no_duplicates", second_event_of_a_number),
    ("workers.boot_id", second_boot_of_an_id),
    ("outside_services.name", second_service_of_a_name),
    ("service_away_has_a_next_try", lambda: (OutsideService.objects.create(name="a"), {"away_since": NOW})),
    ("service_away_has_a_next_try", lambda: (OutsideService.objects.create(name="a"), {"next_try_at": NOW})),
    ("workspaces.name", second_workspace_of_a_name),
    ("workspace_keeps_documents_for_a_day_or_more", broken(WorkspaceFactory, document_retention_days=0)),
    ("membership_one_per_workspace_and_user", second_membership),
    ("membership_role_is_known", broken(MembershipFactory, role="king")),
    ("document_purged_holds_nothing", broken(DocumentFactory, purged_at=NOW)),
    ("document_status_is_known", broken(DocumentFactory, status="queued")),
    ("configuration_name_is_unique_in_its_workspace", second_configuration_of_a_name),
    ("job_one_live_per_document", second_live_job),
    ("job_completed_at_is_set_exactly_when_completed", broken(JobFactory, "COMPLETED", completed_at=None)),
    ("job_completed_at_is_set_exactly_when_completed", broken(JobFactory, "FAILED", completed_at=LATE)),
    ("job_completed_at_is_set_exactly_when_completed", broken(JobFactory, "PROCESSING", completed_at=LATE)),
    ("job_attempts_stay_within_the_limit", broken(JobFactory, attempts=4)),
    ("job_priority_is_known", broken(JobFactory, priority=7)),
    ("job_failure_leaves_an_error_log", broken(JobFactory, "FAILED", error_log="")),
    ("stage_one_per_job_name_and_segment", second_stage_of_a_segment),
    ("stage_name_is_known", broken(StageFactory, name="guess")),
    ("build_one_per_configuration_and_fingerprint", second_build_of_a_fingerprint),
    ("build_fingerprint_is_not_empty", broken(BuildFactory, fingerprint="")),
    ("build_failure_type_is_set_exactly_when_failed", broken(BuildFactory, "failed", failure_type="")),
    ("build_failure_type_is_set_exactly_when_failed", broken(BuildFactory, "queued", failure_type="BUILD_FAILED")),
    ("run_one_running_per_document", second_running_run),
    ("run_failure_type_is_set_exactly_when_failed", broken(RunFactory, "failed", failure_type="")),
    ("run_failure_type_is_set_exactly_when_failed", broken(RunFactory, "succeeded", failure_type="TIMED_OUT")),
    ("run_that_ran_was_started", broken(RunFactory, "running", started_at=None)),
    ("run_that_ran_was_started", broken(RunFactory, "succeeded", started_at=None)),
    ("run_is_claimed_at_most_once", broken(RunFactory, "running", claim_token=2)),
    ("run_gate_is_known", broken(RunFactory, gate="garden")),
    ("run_pruned_has_ended", broken(RunFactory, "running", pruned_at=NOW)),
    ("job_run_pruned_has_ended", broken(JobRunFactory, "running", pruned_at=NOW)),
    ("artifact_name_is_unique_in_its_run", second_artifact_of_a_name),
    ("chunk_position_is_unique_in_its_document", second_chunk_in_a_position),
    ("document_field_is_one_per_name_and_source", second_value_of_a_source),
    ("document_field_has_one_chosen_value", second_chosen_value),
    ("document_field_reviewed_is_chosen", broken(DocumentFieldFactory, chosen=False, to_review=True)),
    ("document_field_reviewed_is_chosen", broken(DocumentFieldFactory, also_found=True, to_review=True)),
    (
        "document_reviewed_is_kept",
        broken(DocumentFactory, "processed", to_review=True, purged_at=NOW, file="", text=""),
    ),
    ("document_type_confidence_is_a_share", broken(DocumentFactory, type_confidence=1.1)),
    ("document_type_name_is_unique_in_its_workspace", second_type_of_a_name),
    ("document_type_threshold_is_a_share", broken(DocumentTypeFactory, threshold=-0.1)),
    ("document_type_field_is_unique_in_its_type", second_field_of_a_type),
    ("document_type_field_threshold_is_a_share", broken(DocumentTypeFieldFactory, threshold=2)),
    ("retyping_is_one_per_type", second_retyping_of_a_type),
    ("sender_switched_off_by_somebody", broken(SenderFactory, switched_off_at=NOW)),
    ("sender_switched_off_by_somebody", broken(SenderFactory, switched_off_by="olga")),
    ("sender_identity_is_unique_in_its_workspace", second_sender_of_an_identity),
    ("sender_identity_kind_is_known", broken(SenderIdentityFactory, kind="colour")),
    ("sender_lesson_switched_off_by_somebody", broken(SenderLessonFactory, switched_off_at=NOW)),
    ("sender_lesson_switched_off_by_somebody", broken(SenderLessonFactory, switched_off_by="olga")),
    ("lesson_evidence_is_one_per_document", second_evidence_of_a_document),
    ("sender_updates.sender_id", second_update_of_a_sender),
    ("problem_dismissed_by_somebody", broken(DocumentProblemFactory, dismissed_at=NOW)),
    ("problem_dismissed_by_somebody", broken(DocumentProblemFactory, dismissed_by="olga")),
    ("document_field_confidence_is_a_share", broken(DocumentFieldFactory, confidence=1.5)),
    ("document_field_confidence_is_a_share", broken(DocumentFieldFactory, confidence=-0.1)),
    ("field_correction_is_one_per_document_and_name", second_correction_of_a_field),
    ("document_table_name_is_unique_in_its_document", second_table_of_a_name),
    ("table_rows_begin_at_one_row", second_rows_of_a_table),
    ("table_rows_are_numbered_from_one", lambda: (rows_of_a_table(), {"first": 0})),
    ("cell_correction_is_one_per_cell", second_correction_of_a_cell),
    ("cell_correction_row_is_numbered_from_one", broken(CellCorrectionFactory, row=0)),
    ("run_field_position_is_unique_in_its_run", second_field_in_a_position),
    ("run_field_confidence_is_a_share", broken(RunFieldFactory, confidence=1.5)),
    ("run_field_confidence_is_a_share", broken(RunFieldFactory, confidence=-0.1)),
    ("job_run_one_per_slot", second_claim_of_a_slot),
    ("job_run_one_running_per_job", second_slot_running),
    ("job_run_was_started", broken(JobRunFactory, started_at=None)),
    ("scheduled_jobs.name", second_job_of_a_name),
    ("scheduled_job_paused_by_somebody", broken(ScheduledJobFactory, paused_at=NOW)),
    ("scheduled_job_paused_by_somebody", broken(ScheduledJobFactory, paused_by="olga")),
    ("due_slot_one_per_job_and_moment", second_due_slot_of_a_moment),
    ("scheduler_lease_is_one_row", scheduler_lease),
    ("queue_is_one_row", broken(QueueFactory, id=2)),
    ("queue_paused_by_somebody", broken(QueueFactory, paused_at=NOW)),
    ("queue_paused_by_somebody", broken(QueueFactory, paused_by="olga")),
    ("queue_paused_by_somebody", broken(QueueFactory, pause_reason="a disk is full")),
    ("worker_drain_requested_by_somebody", broken(booted, drain_requested_at=NOW)),
    ("worker_drain_requested_by_somebody", broken(booted, drain_requested_by="olga")),
    ("worker_drain_requested_by_somebody", broken(booted, drain_reason="a new version")),
    ("webhook_tail_is_one_row", webhook_tail),
    ("webhook_name_is_unique_in_its_workspace", second_webhook_of_a_name),
    ("webhook_paused_by_somebody", broken(WebhookFactory, paused_at=NOW)),
    ("webhook_paused_by_somebody", broken(WebhookFactory, paused_by="olga")),
    ("webhook_earlier_secret_has_an_end", broken(WebhookFactory, earlier_salt="salt")),
    ("webhook_earlier_secret_has_an_end", broken(WebhookFactory, earlier_expires_at=LATE)),
    ("delivery_one_per_webhook_and_event", second_delivery_of_an_event),
    ("delivery_one_at_a_time_per_webhook", second_delivery_under_way),
    ("delivery_delivered_was_answered", broken(DeliveryFactory, "delivered", answered=500)),
    ("delivery_failure_says_why", broken(DeliveryFactory, "failed", error_message="")),
    ("feed_sources.url", second_feed_of_a_url),
    ("feed_paused_by_somebody", broken(FeedFactory, paused_at=NOW)),
    ("feed_paused_by_somebody", broken(FeedFactory, paused_by="olga")),
    ("feed_failures_have_an_error", broken(FeedFactory, failures=1, failing_since=NOW)),
    ("feed_failing_since_is_set_exactly_while_it_fails", broken(FeedFactory, failures=1, last_error="404")),
    ("feed_failing_since_is_set_exactly_while_it_fails", broken(FeedFactory, failing_since=NOW)),
    ("raw_articles.url", second_article_of_a_url),
    ("raw_article_has_a_title", broken(ArticleFactory, title="")),
    ("raw_article_happened_before_it_was_seen", broken(ArticleFactory, happened_at=LATE)),
    ("purged_urls.digest", second_tombstone_of_a_url),
    ("event_cluster_count_is_not_negative", broken(ClusterFactory, article_count=-1)),
    ("event_cluster_times_are_in_order", broken(ClusterFactory, first_at=LATE)),
    ("cluster_article_linked_once", second_link_in_a_cluster),
    ("cluster_article_has_one_cluster", second_cluster_of_an_article),
    ("briefs.scheduled_for", unguarded(second_brief_of_a_slot)),
    ("briefs.name", unguarded(second_brief_of_a_name)),
    ("brief_window_is_in_order", unguarded(broken(BriefFactory, window_from=LATE, window_until=EARLY))),
    ("brief_item_position_is_unique_in_its_brief", unguarded(second_item_in_a_position)),
    ("brief_item_cluster_is_unique_in_its_brief", unguarded(second_item_of_a_cluster)),
    ("brief_article_position_is_unique_in_its_item", unguarded(second_article_in_a_position)),
    ("api_token_name_is_unique_among_those_of_a_person", second_token_of_a_name),
    ("api_tokens.prefix", second_token_of_a_prefix),
    ("visit_looks_back", lambda: visit(looked_until=LATE)),
    ("visits.person_id", second_visit_of_a_person),
    ("failure_note_one_per_workspace_and_cause", second_note_on_a_cause),
    ("failure_note_says_something", lambda: failure_note(text="")),
    ("promise_check_took_its_time", lambda: promise_check(seconds=-1)),
    ("promise_checks.name", second_check_of_a_promise),
    ("api_token_revoked_by_somebody", broken(ApiTokenFactory, revoked_at=NOW)),
    ("api_token_revoked_by_somebody", broken(ApiTokenFactory, revoked_by="olga")),
    ("kept_answer_one_per_caller_and_key", second_answer_of_a_key),
    ("audit_entry_answer_is_a_status_of_http", broken(AuditEntryFactory, answered=99)),
    ("audit_entry_answer_is_a_status_of_http", broken(AuditEntryFactory, answered=600)),
    ("audit_entry_subject_has_a_kind", broken(AuditEntryFactory, subject_id=7)),
]

OURS = [model for model in apps.get_models() if (settings.BASE_DIR / model.__module__.partition(".")[0]).is_dir()]
CONSTRAINTS = {constraint.name: constraint for model in OURS for constraint in model._meta.constraints}
UNIQUE = {f"{m._meta.db_table}.{f.column}" for m in OURS for f in m._meta.fields if f.unique and not f.primary_key}


def test_every_constraint_is_broken_here():
    assert {name for name, _ in BREAKING} == {*CONSTRAINTS, *UNIQUE}


@pytest.mark.django_db
@pytest.mark.parametrize(("name", "arrange"), BREAKING, ids=[name for name, _ in BREAKING])
def test_the_database_refuses_a_row_that_breaks(name, arrange, request):
    if name.startswith("event_"):
        request.getfixturevalue("history_is_open")
    row, columns = arrange()

    with pytest.raises(IntegrityError) as refused, transaction.atomic():
        update(row, columns)

    # SQLite names the columns of a broken unique constraint instead of the constraint.
    words = str(refused.value)
    assert (
        name in words
        or (connection.vendor != "postgresql" and "unique" in words.lower())
        or unique_column(name) in words
    )


@pytest.mark.parametrize("constraint", CONSTRAINTS.values(), ids=CONSTRAINTS)
def test_a_constraint_speaks_to_people_in_a_sentence(constraint):
    message = str(constraint.violation_error_message)

    assert message != str(models.BaseConstraint.default_violation_error_message)
    assert message[0].isupper()
    assert message.endswith(".")
    assert len(message.split()) > 3


@pytest.mark.django_db
@pytest.mark.parametrize("column", ["workspace_id", "configuration_id", "input_document_id", "build_id"])
def test_a_run_has_a_workspace_a_configuration_a_document_and_a_build(column):
    with pytest.raises(IntegrityError), transaction.atomic():
        update(RunFactory(), {column: None})


def update(row, columns):
    fields = [row._meta.get_field(name) for name in columns]
    sets = ", ".join(f"{field.column} = %s" for field in fields)
    values = [field.get_db_prep_save(columns[name], connection) for name, field in zip(columns, fields, strict=True)]
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {row._meta.db_table} SET {sets} WHERE id = %s", [*values, row.pk])  # noqa: S608  # no user input


def unique_column(name):
    """PostgreSQL names a unique column's constraint after table and column."""
    return name.replace(".", "_")
