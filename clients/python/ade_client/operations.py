"""The operations of the API. Written by tools/make_client.py (`make client`): change the API instead."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO, Literal, NotRequired, TypedDict, cast

from ade_client.transport import Call, Event, File, Progress, Transport, path_of


class ArticleOut(TypedDict):
    id: int
    feed_id: int
    url: str
    title: str
    summary: str
    author: str
    published_at: str | None
    happened_at: str
    seen_at: str


class ArtifactLinkOut(TypedDict):
    url: str
    expires_at: str


class ArtifactOut(TypedDict):
    id: int
    run_id: int
    name: str
    size_bytes: int
    sha256: str
    content_type: str
    created_at: str


class Attempt(TypedDict):
    at: str
    event: str
    message: str
    status: int | None
    seconds: float | None
    answer: str | None


class AuditEntryOut(TypedDict):
    id: int
    at: str
    actor: str
    token_id: int | None
    workspace_id: int | None
    address: str
    request_id: str
    method: str
    path: str
    operation: str
    subject_kind: str | None
    subject_id: int | None
    answered: int | None


class BackfillOut(TypedDict):
    job: str
    rehearsed: bool
    free: list[str]
    taken: list[str]


BackfillRange = TypedDict(
    "BackfillRange",
    {
        "from": "str",
        "to": "str",
        "rehearse": "NotRequired[bool]",
    },
)


class BriefArticleOut(TypedDict):
    title: str
    link: str
    url: str
    source: str
    at: str


class BriefDetailOut(TypedDict):
    id: int
    name: str
    title: str
    scheduled_for: str
    time_zone: str
    published_at: str
    window_from: str
    window_until: str
    articles_seen: int
    feeds_seen: int
    feeds_silent: int
    clusters_seen: int
    links: BriefLinksOut
    notes: list[str]
    stories: list[BriefStoryOut]


class BriefLinksOut(TypedDict):
    html: str
    text: str
    rss: str


class BriefOut(TypedDict):
    id: int
    name: str
    title: str
    scheduled_for: str
    time_zone: str
    published_at: str
    window_from: str
    window_until: str
    articles_seen: int
    feeds_seen: int
    feeds_silent: int
    clusters_seen: int
    links: BriefLinksOut


class BriefReasonOut(TypedDict):
    words: str
    percent: float


class BriefStoryOut(TypedDict):
    number: int
    cluster_id: int
    headline: str
    summary: str
    article_count: int
    percent: float
    reasons: list[BriefReasonOut]
    articles: list[BriefArticleOut]


class BuildCancelOut(TypedDict):
    result: Literal["cancelled", "asked"]
    build: BuildOut


class BuildDetailOut(TypedDict):
    id: int
    workspace_id: int
    configuration_id: int
    fingerprint: str
    status: Literal["queued", "building", "ready", "failed", "cancelled"]
    failure_type: str | None
    error_message: str | None
    size_bytes: int | None
    losses: int
    created_at: str
    queued_at: str
    started_at: str | None
    finished_at: str | None
    cancel_requested_at: str | None
    cancel_requested_by: str | None
    lock: str | None
    waiting: WaitingOut


class BuildOut(TypedDict):
    id: int
    workspace_id: int
    configuration_id: int
    fingerprint: str
    status: Literal["queued", "building", "ready", "failed", "cancelled"]
    failure_type: str | None
    error_message: str | None
    size_bytes: int | None
    losses: int
    created_at: str
    queued_at: str
    started_at: str | None
    finished_at: str | None
    cancel_requested_at: str | None
    cancel_requested_by: str | None


class CellCorrectionOut(TypedDict):
    text: str
    by: str
    at: str
    machine_text: str


class CellOut(TypedDict):
    text: str
    value: str | None
    machine_text: str
    page: int | None
    box: list[float] | None
    correction: CellCorrectionOut | None


class CellText(TypedDict):
    text: str


class ChangeOut(TypedDict):
    document_id: int
    field: str
    before: str | None
    after: str | None
    verdict: Literal["improved", "changed", "worse"]


class Changes(TypedDict):
    name: NotRequired[str | None]
    url: NotRequired[str | None]
    topics: NotRequired[
        list[
            Literal[
                "run.succeeded",
                "run.failed",
                "run.cancelled",
                "build.ready",
                "build.failed",
                "build.cancelled",
                "document.processed",
                "document.failed",
            ]
        ]
        | None
    ]


class ChunkOut(TypedDict):
    id: int
    position: int
    page: int | None
    text: str


class ClusterDetailOut(TypedDict):
    id: int
    title: str
    article_count: int
    first_at: str
    last_at: str
    merged_into_id: int | None
    created_at: str
    articles: list[ArticleOut]


class ClusterOut(TypedDict):
    id: int
    title: str
    article_count: int
    first_at: str
    last_at: str
    merged_into_id: int | None
    created_at: str


class ColumnOut(TypedDict):
    name: str
    label: str
    kind: str


class ConfigurationCheckOut(TypedDict):
    ok: bool
    problems: list[ProblemOfPackage]
    fingerprint: str
    environment: str | None


class ConfigurationDetail(TypedDict):
    id: int
    workspace_id: int
    name: str
    entry_point: str
    python_version: str
    publish: bool
    contents_sha256: str
    created_at: str
    updated_at: str
    requirements: str
    files: list[PackageFileOut]


class ConfigurationOut(TypedDict):
    id: int
    workspace_id: int
    name: str
    entry_point: str
    python_version: str
    publish: bool
    contents_sha256: str
    created_at: str
    updated_at: str


class ConfigurationStoredOut(TypedDict):
    id: int
    workspace_id: int
    name: str
    entry_point: str
    python_version: str
    publish: bool
    contents_sha256: str
    created_at: str
    updated_at: str
    requirements: str
    files: list[PackageFileOut]
    result: str


class Correction(TypedDict):
    value: str


class CorrectionOut(TypedDict):
    value: str
    by: str
    at: str


class Deliveries(TypedDict):
    limit: NotRequired[int]
    cursor: NotRequired[str]
    order: NotRequired[Literal["-id", "id"]]
    status: NotRequired[Literal["queued", "sending", "delivered", "failed"] | None]
    topic: NotRequired[
        Literal[
            "run.succeeded",
            "run.failed",
            "run.cancelled",
            "build.ready",
            "build.failed",
            "build.cancelled",
            "document.processed",
            "document.failed",
        ]
        | Literal["ping"]
        | None
    ]


class DeliveryDetail(TypedDict):
    id: int
    webhook_id: int
    topic: str
    event_id: int | None
    resend_of: int | None
    status: Literal["queued", "sending", "delivered", "failed"]
    attempts: int
    answered: int | None
    failure_type: str | None
    error_message: str | None
    created_at: str
    next_attempt_at: str | None
    finished_at: str | None
    payload: dict[str, Any]
    history: list[Attempt]


class DeliveryOut(TypedDict):
    id: int
    webhook_id: int
    topic: str
    event_id: int | None
    resend_of: int | None
    status: Literal["queued", "sending", "delivered", "failed"]
    attempts: int
    answered: int | None
    failure_type: str | None
    error_message: str | None
    created_at: str
    next_attempt_at: str | None
    finished_at: str | None


class DepthOut(TypedDict):
    queued: int
    running: int


class DocumentFieldOut(TypedDict):
    name: str
    value: str
    machine_value: str | None
    kind: str | None
    confidence: float | None
    page: int | None
    box: list[float] | None
    source: str | None
    reason: str
    in_conflict: bool
    to_review: bool
    also_found: bool
    others: list[SourceValueOut]
    correction: CorrectionOut | None
    agrees: bool | None


class DocumentFieldsOut(TypedDict):
    document_id: int
    items: list[DocumentFieldOut]


class DocumentLinkOut(TypedDict):
    url: str
    expires_at: str


class DocumentOut(TypedDict):
    id: int
    workspace_id: int
    name: str
    status: Literal["processing", "processed", "failed"]
    content_type: str
    size_bytes: int
    sha256: str
    pages: int | None
    type: str | None
    type_confidence: float | None
    type_reason: str | None
    type_chosen_by: str | None
    to_review: bool
    sender_id: int | None
    created_at: str
    purged_at: str | None


class DocumentTextOut(TypedDict):
    document_id: int
    status: Literal["processing", "processed", "failed"]
    characters: int
    offset: int
    text: str
    next_offset: int | None


class DocumentTypeOut(TypedDict):
    name: str
    label: str
    built_in: bool
    words: list[str]
    fields: list[TypeFieldOut]


class DocumentTypesOut(TypedDict):
    workspace_id: int
    items: list[DocumentTypeOut]


class DoingOut(TypedDict):
    kind: str
    id: int | None


class DueSlotOut(TypedDict):
    id: int
    job: str
    slot: str
    due_at: str
    asked_by: str
    in_stead_of: str | None


class ExplanationOut(TypedDict):
    kind: str
    id: int
    status: str
    outcome: str
    message: str
    held_by: list[str]
    gates: list[GateOut]


class Export(TypedDict):
    format: NotRequired[Literal["csv", "xlsx", "json"]]


class FeedAddition(TypedDict):
    url: str
    title: NotRequired[str]


class FeedDetailOut(TypedDict):
    id: int
    url: str
    title: str
    site_url: str
    state: Literal["new", "ok", "failing", "paused"]
    standing: str
    next_check_at: str
    checked_at: str | None
    succeeded_at: str | None
    failures: int
    failing_since: str | None
    last_error: str
    paused_at: str | None
    paused_by: str
    created_at: str
    articles: int


class FeedOut(TypedDict):
    id: int
    url: str
    title: str
    site_url: str
    state: Literal["new", "ok", "failing", "paused"]
    standing: str
    next_check_at: str
    checked_at: str | None
    succeeded_at: str | None
    failures: int
    failing_since: str | None
    last_error: str
    paused_at: str | None
    paused_by: str
    created_at: str


class FeedPause(TypedDict):
    reason: NotRequired[str]


class FeedRenaming(TypedDict):
    title: str


class FieldFoundOut(TypedDict):
    id: int
    document_id: int
    name: str
    machine_value: str
    kind: str
    confidence: float | None
    page: int | None
    box: list[float] | None
    source: str
    reason: str
    in_conflict: bool
    to_review: bool
    also_found: bool
    correction: str | None
    corrected_by: str | None


class ForecastOut(TypedDict):
    status: str
    position: int | None
    position_in_words: str
    estimated_start: str | None
    based_on: str


class GateOut(TypedDict):
    name: str
    holds: bool
    message: str
    holder: str | None
    since: str | None
    data: dict[str, Any]


class HealthDetailsOut(TypedDict):
    version: str
    workers_alive: int
    slots: dict[str, int]
    queues: list[QueueNumbersOut]
    oldest_waiting_since: str | None


class HealthOut(TypedDict):
    status: Literal["ok"]


class HitOut(TypedDict):
    document_id: int
    chunk_id: int
    name: str
    workspace: str
    content_type: str
    position: int
    page: int | None
    snippet: list[SnippetPartOut]
    why: str
    score: float
    words_place: int | None
    meaning_place: int | None
    nearness: float | None


class IdentityOut(TypedDict):
    kind: str
    value: str


class ImportOut(TypedDict):
    rehearsed: bool
    counts: dict[str, int]
    feeds: list[ImportedOut]


class ImportedOut(TypedDict):
    line: int | None
    url: str
    title: str
    result: str
    id: int | None
    message: str


class JobDetailOut(TypedDict):
    name: str
    about: str
    schedule: str
    cron: str
    time_zone: str
    state: Literal["new", "scheduled", "waiting", "running", "paused", "retired"]
    paused_by: str
    paused_at: str | None
    running: int | None
    running_since: str | None
    waiting: int
    next_slot: str | None
    last_outcome: str
    last_slot: str | None
    last_ended_at: str | None
    last_error: str
    last_success: str | None
    max_runtime_seconds: float | None
    misfire_grace_seconds: float | None
    coalesce: bool | None


class JobOut(TypedDict):
    name: str
    about: str
    schedule: str
    cron: str
    time_zone: str
    state: Literal["new", "scheduled", "waiting", "running", "paused", "retired"]
    paused_by: str
    paused_at: str | None
    running: int | None
    running_since: str | None
    waiting: int
    next_slot: str | None
    last_outcome: str
    last_slot: str | None
    last_ended_at: str | None
    last_error: str
    last_success: str | None


class JobPause(TypedDict):
    reason: NotRequired[str]


class JobRunOut(TypedDict):
    id: int
    job_name: str
    scheduled_for: str
    status: str
    started_at: str
    finished_at: str | None
    worker_instance: str | None
    rows_processed: int | None
    failure_type: str
    error_message: str


class LedgerOut(TypedDict):
    job: str
    last_success: str | None
    next_slot: str | None
    counts: dict[str, int]
    slots: list[SlotOut]


class LessonOut(TypedDict):
    id: int
    sender_id: int
    field: str
    printed: bool
    learned_from_id: int | None
    learned_at: str
    right: int
    wrong: int
    switched_off_at: str | None
    switched_off_by: str | None


class MeOut(TypedDict):
    user: str
    is_superuser: bool
    token: MyTokenOut | None
    workspaces: list[MyWorkspaceOut]


class MemberOut(TypedDict):
    user: str
    role: Literal["viewer", "operator", "admin"]


class MyTokenOut(TypedDict):
    name: str
    prefix: str
    scopes: list[str]
    expires_at: str | None


class MyWorkspaceOut(TypedDict):
    id: int
    name: str
    role: Literal["viewer", "operator", "admin"]


class NewToken(TypedDict):
    workspace_id: int
    name: str
    scopes: NotRequired[list[Literal["read", "operate", "admin", "installation"]]]
    expires_at: NotRequired[str | None]


class NewTokenOut(TypedDict):
    id: int
    name: str
    prefix: str
    state: Literal["usable", "expired", "revoked"]
    scopes: list[Literal["read", "operate", "admin", "installation"]]
    workspace_id: int
    user: str
    created_at: str
    created_by: str
    expires_at: str | None
    revoked_at: str | None
    revoked_by: str | None
    last_used_at: str | None
    last_used_from: str | None
    token: str | None


class NewWebhook(TypedDict):
    name: str
    url: str
    topics: list[
        Literal[
            "run.succeeded",
            "run.failed",
            "run.cancelled",
            "build.ready",
            "build.failed",
            "build.cancelled",
            "document.processed",
            "document.failed",
        ]
    ]


class OwnDepthOut(TypedDict):
    queued: int
    running: int
    workspace_id: int


class PackageFileOut(TypedDict):
    path: str
    size_bytes: int


class Policy(TypedDict):
    document_retention_days: int | None
    purge: NotRequired[bool]


class ProblemOfDocumentOut(TypedDict):
    id: int
    document_id: int
    code: str
    field: str | None
    message: str
    found_at: str
    dismissed_at: str | None
    dismissed_by: str | None


class ProblemOfPackage(TypedDict):
    stage: str
    message: str
    path: str | None
    line: int | None


class ProcessingJobOut(TypedDict):
    id: int
    status: str
    attempts: int
    max_attempts: int
    next_attempt_at: str
    failure_type: str | None
    error_message: str | None
    error_log: str
    created_at: str
    started_at: str | None
    finished_at: str | None
    stages: list[StageOut]


class QueueNumbersOut(TypedDict):
    kind: str
    waiting: int
    at_work: int
    oldest_waiting_since: str | None


class QueueOut(TypedDict):
    total: DepthOut
    own: list[OwnDepthOut]
    limit: int | None
    free: int | None
    slots: int
    paused: bool
    paused_at: str | None
    paused_by: str | None
    pause_reason: str | None


class Reason(TypedDict):
    reason: NotRequired[str]


class RehearsalOut(TypedDict):
    days: int | None
    documents: int
    size_bytes: int
    oldest: str | None
    kept: int
    sample: list[SampleOut]


class Rotation(TypedDict):
    drop: NotRequired[Literal["newest", "earlier"] | None]


class RunAddressesOut(TypedDict):
    stream: str
    log: str
    files: str


class RunCancelOut(TypedDict):
    result: Literal["cancelled", "asked"]
    run: RunOut


class RunDetailOut(TypedDict):
    id: int
    workspace_id: int
    configuration_id: int
    input_document_id: int
    build_id: int
    status: Literal["queued", "running", "succeeded", "failed", "cancelled"]
    outcome: Literal["queued", "running", "succeeded", "failed", "cancelled", "timed_out"]
    failure_type: str | None
    error_message: str | None
    waits_for_processing: bool
    created_at: str
    started_at: str | None
    finished_at: str | None
    cancel_requested_at: str | None
    cancel_requested_by: str | None
    pruned_at: str | None
    addresses: RunAddressesOut
    fields: list[RunFieldOut]
    artifacts: list[ArtifactOut]


class RunFieldOut(TypedDict):
    position: int
    name: str
    value: Any
    confidence: float | None
    page: int | None
    box: list[float] | None
    step: str | None


class RunOut(TypedDict):
    id: int
    workspace_id: int
    configuration_id: int
    input_document_id: int
    build_id: int
    status: Literal["queued", "running", "succeeded", "failed", "cancelled"]
    outcome: Literal["queued", "running", "succeeded", "failed", "cancelled", "timed_out"]
    failure_type: str | None
    error_message: str | None
    waits_for_processing: bool
    created_at: str
    started_at: str | None
    finished_at: str | None
    cancel_requested_at: str | None
    cancel_requested_by: str | None
    pruned_at: str | None
    addresses: RunAddressesOut


class RunsOut(TypedDict):
    items: list[RunOut]


class SampleOut(TypedDict):
    id: int
    name: str
    size_bytes: int
    created_at: str


class SearchOut(TypedDict):
    hits: list[HitOut]
    how: list[str]
    notes: list[str]
    has_more: bool


class SenderDetailOut(TypedDict):
    id: int
    workspace_id: int
    name: str
    created_at: str
    switched_off_at: str | None
    switched_off_by: str | None
    applied_at: str | None
    applied_by: str | None
    identities: list[IdentityOut]
    lessons: list[LessonOut]


class SenderFile(TypedDict):
    version: int
    name: str
    identities: list[dict[str, Any]]
    lessons: list[dict[str, Any]]


class SenderFileOut(TypedDict):
    version: int
    name: str
    identities: list[IdentityOut]
    lessons: list[dict[str, Any]]


class SenderImportedOut(TypedDict):
    id: int
    name: str
    new_lessons: int


class SenderOut(TypedDict):
    id: int
    workspace_id: int
    name: str
    created_at: str
    switched_off_at: str | None
    switched_off_by: str | None
    applied_at: str | None
    applied_by: str | None


class SenderPreviewOut(TypedDict):
    sender_id: int
    documents: int
    is_cut: bool
    counts: dict[str, int]
    changes: list[ChangeOut]


class SlotOut(TypedDict):
    slot: str
    state: State
    is_scheduled: bool
    job_run: int | None
    started_at: str | None
    finished_at: str | None
    rows_processed: int | None
    by: str
    asked_by: str
    covers: str | None
    into: str | None
    reason: str


class SnippetPartOut(TypedDict):
    text: str
    is_match: bool


class SourceValueOut(TypedDict):
    source: str | None
    value: str
    confidence: float | None
    page: int | None
    box: list[float] | None
    reason: str


class StageOut(TypedDict):
    id: int
    name: str
    segment: int
    status: str
    losses: int
    failure_type: str | None
    error_message: str | None
    created_at: str
    started_at: str | None
    finished_at: str | None


State = Literal[
    "expected",
    "waiting",
    "running",
    "succeeded",
    "failed",
    "abandoned",
    "coalesced",
    "misfired",
    "passed_over",
    "missed",
]


class SubjectEventOut(TypedDict):
    sequence: int
    at: str
    kind: str
    from_status: str | None
    to_status: str | None
    actor: str | None
    level: int
    message: str
    data: dict[str, Any] | None


class Submission(TypedDict):
    wait_for_processing: NotRequired[bool]
    document_id: NotRequired[int | None]
    input_document_id: NotRequired[int | None]


class Submissions(TypedDict):
    wait_for_processing: NotRequired[bool]
    configuration_id: int
    document_ids: list[int]


class TableOut(TypedDict):
    name: str
    page: int | None
    box: list[float] | None
    columns: list[ColumnOut]
    row_count: int
    rows_left_out: int
    columns_left_out: int


class TableRowOut(TypedDict):
    number: int
    cells: list[CellOut]


class TablesOut(TypedDict):
    document_id: int
    items: list[TableOut]


class TokenOut(TypedDict):
    id: int
    name: str
    prefix: str
    state: Literal["usable", "expired", "revoked"]
    scopes: list[Literal["read", "operate", "admin", "installation"]]
    workspace_id: int
    user: str
    created_at: str
    created_by: str
    expires_at: str | None
    revoked_at: str | None
    revoked_by: str | None
    last_used_at: str | None
    last_used_from: str | None


class Trigger(TypedDict):
    slot: NotRequired[str | None]
    in_stead_of: NotRequired[str | None]


class TypeChoice(TypedDict):
    type: str | None


class TypeFieldOut(TypedDict):
    name: str
    kind: str
    required: bool
    threshold: float


class Upload(TypedDict):
    workspace: NotRequired[int | None]
    again: NotRequired[bool]


class WaitingOut(TypedDict):
    count: int
    run_ids: list[int]


class WebhookOut(TypedDict):
    id: int
    workspace_id: int
    name: str
    url: str
    topics: list[
        Literal[
            "run.succeeded",
            "run.failed",
            "run.cancelled",
            "build.ready",
            "build.failed",
            "build.cancelled",
            "document.processed",
            "document.failed",
        ]
    ]
    state: Literal["active", "paused", "removed"]
    paused_at: str | None
    paused_by: str | None
    paused_for: str | None
    earlier_expires_at: str | None
    created_at: str
    created_by: str


class WithSecret(TypedDict):
    id: int
    workspace_id: int
    name: str
    url: str
    topics: list[
        Literal[
            "run.succeeded",
            "run.failed",
            "run.cancelled",
            "build.ready",
            "build.failed",
            "build.cancelled",
            "document.processed",
            "document.failed",
        ]
    ]
    state: Literal["active", "paused", "removed"]
    paused_at: str | None
    paused_by: str | None
    paused_for: str | None
    earlier_expires_at: str | None
    created_at: str
    created_by: str
    secret: str | None


class WorkerOut(TypedDict):
    id: int
    name: str
    owner: str
    state: Literal["alive", "stopped", "silent"]
    host: str
    pid: int
    version: str
    lanes: dict[str, int]
    started_at: str
    heartbeat_at: str
    stopped_at: str | None
    doing: list[DoingOut]
    drain_requested_at: str | None
    drain_requested_by: str | None
    drain_reason: str | None


class WorkspaceDetail(TypedDict):
    id: int
    name: str
    created_at: str
    document_retention_days: int | None
    role: Literal["viewer", "operator", "admin"]
    documents: int
    configurations: int


class WorkspaceOut(TypedDict):
    id: int
    name: str
    created_at: str
    document_retention_days: int | None
    role: Literal["viewer", "operator", "admin"]


class Operations:
    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    def add_feed(self, body: FeedAddition, *, idempotency_key: str | None = None) -> FeedOut:
        """Add a feed. It is fetched when the job runs next."""
        return cast(
            "FeedOut",
            self.transport.json(
                Call(
                    "POST",
                    path_of("/api/v1/feeds"),
                    {},
                    body=body,
                    creates=True,
                    headers={"Idempotency-Key": idempotency_key} if idempotency_key else None,
                )
            ),
        )

    def add_webhook(self, id: int, body: NewWebhook, *, idempotency_key: str | None = None) -> WithSecret:
        """Add a webhook, which is notified when work of the workspace ends. Its secret is shown only once."""
        return cast(
            "WithSecret",
            self.transport.json(
                Call(
                    "POST",
                    path_of("/api/v1/workspaces/{id}/webhooks", id=id),
                    {},
                    body=body,
                    creates=True,
                    headers={"Idempotency-Key": idempotency_key} if idempotency_key else None,
                )
            ),
        )

    def apply_sender(self, id: int) -> SenderOut:
        """Use the lessons of a sender for the documents that are there already, some at a time."""
        return cast("SenderOut", self.transport.json(Call("POST", path_of("/api/v1/senders/{id}/apply", id=id), {})))

    def backfill_job(self, name: str, body: BackfillRange, *, idempotency_key: str | None = None) -> BackfillOut:
        """Run all slots of a range that have no run yet, oldest first (201). A preview changes nothing (200)."""
        return cast(
            "BackfillOut",
            self.transport.json(
                Call(
                    "POST",
                    path_of("/api/v1/jobs/{name}/backfill", name=name),
                    {},
                    body=body,
                    creates=True,
                    headers={"Idempotency-Key": idempotency_key} if idempotency_key else None,
                )
            ),
        )

    def build_again(self, id: int, *, idempotency_key: str | None = None) -> BuildOut:
        """Queue a failed or cancelled build again. It stays the same build."""
        return cast(
            "BuildOut",
            self.transport.json(
                Call(
                    "POST",
                    path_of("/api/v1/builds/{id}/again", id=id),
                    {},
                    creates=True,
                    headers={"Idempotency-Key": idempotency_key} if idempotency_key else None,
                )
            ),
        )

    def cancel_build(self, id: int, body: Reason | None) -> BuildCancelOut:
        """Cancel a build. A queued build is cancelled at once; a build in progress is asked to stop."""
        return cast(
            "BuildCancelOut",
            self.transport.json(Call("POST", path_of("/api/v1/builds/{id}/cancel", id=id), {}, body=body)),
        )

    def cancel_run(self, id: int, body: Reason | None) -> RunCancelOut:
        """Cancel a run. A queued run is cancelled at once; a running one is asked to stop."""
        return cast(
            "RunCancelOut", self.transport.json(Call("POST", path_of("/api/v1/runs/{id}/cancel", id=id), {}, body=body))
        )

    def change_webhook(self, id: int, body: Changes) -> WebhookOut:
        """Change the name, URL or topics of a webhook. Waiting deliveries go to the new URL."""
        return cast(
            "WebhookOut", self.transport.json(Call("PATCH", path_of("/api/v1/webhooks/{id}", id=id), {}, body=body))
        )

    def check_configuration(self, id: int) -> ConfigurationCheckOut:
        """Check a configuration without running its code or building an environment."""
        return cast(
            "ConfigurationCheckOut",
            self.transport.json(Call("POST", path_of("/api/v1/configurations/{id}/check", id=id), {})),
        )

    def check_feed(self, id: int) -> FeedOut:
        """Make a feed due now. It is fetched when the job runs next."""
        return cast("FeedOut", self.transport.json(Call("POST", path_of("/api/v1/feeds/{id}/check", id=id), {})))

    def choose_type(self, id: int, body: TypeChoice) -> DocumentOut:
        """Choose the type of a document. It stays when the document is processed again, and similar documents follow it."""
        return cast(
            "DocumentOut",
            self.transport.json(Call("PUT", path_of("/api/v1/documents/{id}/type", id=id), {}, body=body)),
        )

    def correct_field(self, id: int, name: str, body: Correction) -> DocumentFieldOut:
        """Correct or add a field. Sending the extracted value confirms it."""
        return cast(
            "DocumentFieldOut",
            self.transport.json(
                Call("PUT", path_of("/api/v1/documents/{id}/fields/{name}", id=id, name=name), {}, body=body)
            ),
        )

    def correct_table_cell(self, id: int, name: str, row: int, column: str, body: CellText) -> CellOut:
        """Correct a cell. Sending the extracted text confirms it."""
        return cast(
            "CellOut",
            self.transport.json(
                Call(
                    "PUT",
                    path_of(
                        "/api/v1/documents/{id}/tables/{name}/rows/{row}/{column}",
                        id=id,
                        name=name,
                        row=row,
                        column=column,
                    ),
                    {},
                    body=body,
                )
            ),
        )

    def create_configuration(
        self,
        file: File,
        workspace: int | None = None,
        name: str | None = None,
        progress: Progress | None = None,
        *,
        idempotency_key: str | None = None,
    ) -> ConfigurationDetail:
        """Create a configuration from a package, which is a zip file."""
        return cast(
            "ConfigurationDetail",
            self.transport.json(
                Call(
                    "POST",
                    path_of("/api/v1/configurations"),
                    {},
                    body={
                        name: value
                        for name, value in {"workspace": workspace, "name": name}.items()
                        if value is not None
                    },
                    files={"file": file},
                    progress=progress,
                    creates=True,
                    headers={"Idempotency-Key": idempotency_key} if idempotency_key else None,
                )
            ),
        )

    def create_token(self, body: NewToken, *, idempotency_key: str | None = None) -> NewTokenOut:
        """Create a token with at most your permissions. A token created with another one is revoked with it."""
        return cast(
            "NewTokenOut",
            self.transport.json(
                Call(
                    "POST",
                    path_of("/api/v1/tokens"),
                    {},
                    body=body,
                    creates=True,
                    headers={"Idempotency-Key": idempotency_key} if idempotency_key else None,
                )
            ),
        )

    def dismiss_type_problem(self, id: int) -> ProblemOfDocumentOut:
        """Say that a problem is none. It stays dismissed when the document is processed again."""
        return cast(
            "ProblemOfDocumentOut",
            self.transport.json(Call("POST", path_of("/api/v1/problems/{id}/dismiss", id=id), {})),
        )

    def download_artifact(self, id: int, to: BinaryIO) -> int:
        """Download the file or a part of it (Range); 302 to the storage if the storage sends files itself."""
        return self.transport.download(Call("GET", path_of("/api/v1/artifacts/{id}/content", id=id), {}), to)

    def download_configuration_package(self, id: int, to: BinaryIO) -> int:
        """Download a configuration as a zip file. The same contents give the same bytes."""
        return self.transport.download(Call("GET", path_of("/api/v1/configurations/{id}/package", id=id), {}), to)

    def download_document(self, id: int, to: BinaryIO) -> int:
        """Download the original file or a part of it (Range); 302 to the storage if it sends files itself."""
        return self.transport.download(Call("GET", path_of("/api/v1/documents/{id}/content", id=id), {}), to)

    def drain_worker(self, id: int, body: Reason | None) -> WorkerOut:
        """Drain a worker: it takes no new work, finishes within ADE_DRAIN_SECONDS, and stops until its next boot."""
        return cast(
            "WorkerOut", self.transport.json(Call("POST", path_of("/api/v1/workers/{id}/drain", id=id), {}, body=body))
        )

    def explain_build(self, id: int) -> ExplanationOut:
        """Explain what a queued build waits for, what blocks it, and since when."""
        return cast("ExplanationOut", self.transport.json(Call("GET", path_of("/api/v1/builds/{id}/why", id=id), {})))

    def explain_document(self, id: int) -> ExplanationOut:
        """Explain why a document has not been processed yet."""
        return cast(
            "ExplanationOut", self.transport.json(Call("GET", path_of("/api/v1/documents/{id}/why", id=id), {}))
        )

    def explain_run(self, id: int) -> ExplanationOut:
        """Explain what a queued run waits for, what blocks it, and since when."""
        return cast("ExplanationOut", self.transport.json(Call("GET", path_of("/api/v1/runs/{id}/why", id=id), {})))

    def export_table(
        self, id: int, name: str, to: BinaryIO, *, format: Literal["csv", "xlsx", "json"] | None = None
    ) -> int:
        """Download a table as CSV, XLSX or JSON. Numbers and dates are in their normal form."""
        return self.transport.download(
            Call("GET", path_of("/api/v1/documents/{id}/tables/{name}/export", id=id, name=name), {"format": format}),
            to,
        )

    def find_search(
        self,
        *,
        q: str,
        by: Literal["both", "words", "meaning"] | None = None,
        workspace_id: int | None = None,
        content_type: str | None = None,
        status: Literal["processing", "processed", "failed"] | None = None,
        created_after: str | None = None,
        created_before: str | None = None,
        limit: int | None = None,
        after: int | None = None,
    ) -> SearchOut:
        """Search documents by words and meaning, best hits first."""
        return cast(
            "SearchOut",
            self.transport.json(
                Call(
                    "GET",
                    path_of("/api/v1/search"),
                    {
                        "q": q,
                        "by": by,
                        "workspace_id": workspace_id,
                        "content_type": content_type,
                        "status": status,
                        "created_after": created_after,
                        "created_before": created_before,
                        "limit": limit,
                        "after": after,
                    },
                )
            ),
        )

    def follow_stream_build(self, id: int, *, last_event_id: str | None = None, after: str = "") -> Iterator[Event]:
        """Follow the events and the output of a build until it ends."""
        return self.transport.follow(
            Call("GET", path_of("/api/v1/builds/{id}/stream", id=id), {"last_event_id": last_event_id}), after
        )

    def follow_stream_document(self, id: int, *, last_event_id: str | None = None, after: str = "") -> Iterator[Event]:
        """Follow the events of a document. The stream has no end: a document may be processed again."""
        return self.transport.follow(
            Call("GET", path_of("/api/v1/documents/{id}/stream", id=id), {"last_event_id": last_event_id}), after
        )

    def follow_stream_run(self, id: int, *, last_event_id: str | None = None, after: str = "") -> Iterator[Event]:
        """Follow the events and the output of a run until it ends."""
        return self.transport.follow(
            Call("GET", path_of("/api/v1/runs/{id}/stream", id=id), {"last_event_id": last_event_id}), after
        )

    def follow_stream_workspace(
        self, id: int, *, last_event_id: str | None = None, logs: bool | None = None, after: str = ""
    ) -> Iterator[Event]:
        """Follow the events of a workspace: of its runs, builds, documents, processing jobs and stages."""
        return self.transport.follow(
            Call(
                "GET", path_of("/api/v1/workspaces/{id}/stream", id=id), {"last_event_id": last_event_id, "logs": logs}
            ),
            after,
        )

    def forget_sender(self, id: int) -> SenderOut:
        """Delete a sender with all that is known about it, and the values that its lessons gave. Returns it as it was."""
        return cast("SenderOut", self.transport.json(Call("POST", path_of("/api/v1/senders/{id}/forget", id=id), {})))

    def import_sender(self, id: int, body: SenderFile) -> SenderImportedOut:
        """Add what was exported to the sender with its identities, or to a new one. Lessons that are there stay."""
        return cast(
            "SenderImportedOut",
            self.transport.json(Call("POST", path_of("/api/v1/workspaces/{id}/senders/import", id=id), {}, body=body)),
        )

    def link_artifact(self, id: int) -> ArtifactLinkOut:
        """Create a link for downloading the file without a token. It is valid for some minutes."""
        return cast(
            "ArtifactLinkOut", self.transport.json(Call("GET", path_of("/api/v1/artifacts/{id}/link", id=id), {}))
        )

    def link_document(self, id: int) -> DocumentLinkOut:
        """Create a link for downloading the file without a token. It is valid for some minutes."""
        return cast(
            "DocumentLinkOut", self.transport.json(Call("GET", path_of("/api/v1/documents/{id}/link", id=id), {}))
        )

    def list_artifacts(
        self, id: int, *, limit: int | None = None, cursor: str | None = None, order: Literal["-id", "id"] | None = None
    ) -> Iterator[ArtifactOut]:
        """List the files that a run produced."""
        return self.transport.pages(
            Call(
                "GET", path_of("/api/v1/runs/{id}/artifacts", id=id), {"limit": limit, "cursor": cursor, "order": order}
            )
        )

    def list_audit(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["-id", "id"] | None = None,
        workspace_id: int | None = None,
        token_id: int | None = None,
        actor: str | None = None,
        operation: str | None = None,
        since: str | None = None,
        until: str | None = None,
    ) -> Iterator[AuditEntryOut]:
        """List the requested changes in the workspaces that you administer, and how they were answered."""
        return self.transport.pages(
            Call(
                "GET",
                path_of("/api/v1/audit"),
                {
                    "limit": limit,
                    "cursor": cursor,
                    "order": order,
                    "workspace_id": workspace_id,
                    "token_id": token_id,
                    "actor": actor,
                    "operation": operation,
                    "since": since,
                    "until": until,
                },
            )
        )

    def list_briefs(
        self, *, limit: int | None = None, cursor: str | None = None, order: Literal["-id", "id"] | None = None
    ) -> Iterator[BriefOut]:
        """List briefs."""
        return self.transport.pages(
            Call("GET", path_of("/api/v1/briefs"), {"limit": limit, "cursor": cursor, "order": order})
        )

    def list_build_events(
        self,
        id: int,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["-id", "id"] | None = None,
        after: int | None = None,
        kind: str | None = None,
        level: int | None = None,
    ) -> Iterator[SubjectEventOut]:
        """List build events."""
        return self.transport.pages(
            Call(
                "GET",
                path_of("/api/v1/builds/{id}/events", id=id),
                {"limit": limit, "cursor": cursor, "order": order, "after": after, "kind": kind, "level": level},
            )
        )

    def list_builds(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["-id", "id"] | None = None,
        workspace_id: int | None = None,
        configuration_id: int | None = None,
        status: Literal["queued", "building", "ready", "failed", "cancelled"] | None = None,
    ) -> Iterator[BuildOut]:
        """List builds."""
        return self.transport.pages(
            Call(
                "GET",
                path_of("/api/v1/builds"),
                {
                    "limit": limit,
                    "cursor": cursor,
                    "order": order,
                    "workspace_id": workspace_id,
                    "configuration_id": configuration_id,
                    "status": status,
                },
            )
        )

    def list_cluster_articles(
        self, id: int, *, limit: int | None = None, cursor: str | None = None, order: Literal["-id", "id"] | None = None
    ) -> Iterator[ArticleOut]:
        """List cluster articles."""
        return self.transport.pages(
            Call(
                "GET",
                path_of("/api/v1/clusters/{id}/articles", id=id),
                {"limit": limit, "cursor": cursor, "order": order},
            )
        )

    def list_clusters(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["-id", "id"] | None = None,
        since: str | None = None,
    ) -> Iterator[ClusterOut]:
        """List clusters."""
        return self.transport.pages(
            Call("GET", path_of("/api/v1/clusters"), {"limit": limit, "cursor": cursor, "order": order, "since": since})
        )

    def list_configurations(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["-id", "id"] | None = None,
        workspace_id: int | None = None,
        name: str | None = None,
    ) -> Iterator[ConfigurationOut]:
        """List configurations."""
        return self.transport.pages(
            Call(
                "GET",
                path_of("/api/v1/configurations"),
                {"limit": limit, "cursor": cursor, "order": order, "workspace_id": workspace_id, "name": name},
            )
        )

    def list_document_chunks(
        self, id: int, *, limit: int | None = None, cursor: str | None = None, order: Literal["-id", "id"] | None = None
    ) -> Iterator[ChunkOut]:
        """List document chunks."""
        return self.transport.pages(
            Call(
                "GET",
                path_of("/api/v1/documents/{id}/chunks", id=id),
                {"limit": limit, "cursor": cursor, "order": order},
            )
        )

    def list_document_events(
        self,
        id: int,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["-id", "id"] | None = None,
        after: int | None = None,
    ) -> Iterator[SubjectEventOut]:
        """List document events."""
        return self.transport.pages(
            Call(
                "GET",
                path_of("/api/v1/documents/{id}/events", id=id),
                {"limit": limit, "cursor": cursor, "order": order, "after": after},
            )
        )

    def list_document_processing_jobs(
        self, id: int, *, limit: int | None = None, cursor: str | None = None, order: Literal["-id", "id"] | None = None
    ) -> Iterator[ProcessingJobOut]:
        """List the processing jobs of a document, with their stages."""
        return self.transport.pages(
            Call(
                "GET", path_of("/api/v1/documents/{id}/jobs", id=id), {"limit": limit, "cursor": cursor, "order": order}
            )
        )

    def list_documents(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["-id", "id"] | None = None,
        status: Literal["processing", "processed", "failed"] | None = None,
        workspace_id: int | None = None,
        type: str | None = None,
        to_review: bool | None = None,
        content_type: str | None = None,
        sha256: str | None = None,
        created_after: str | None = None,
        created_before: str | None = None,
    ) -> Iterator[DocumentOut]:
        """List documents."""
        return self.transport.pages(
            Call(
                "GET",
                path_of("/api/v1/documents"),
                {
                    "limit": limit,
                    "cursor": cursor,
                    "order": order,
                    "status": status,
                    "workspace_id": workspace_id,
                    "type": type,
                    "to_review": to_review,
                    "content_type": content_type,
                    "sha256": sha256,
                    "created_after": created_after,
                    "created_before": created_before,
                },
            )
        )

    def list_feed_articles(
        self, id: int, *, limit: int | None = None, cursor: str | None = None, order: Literal["-id", "id"] | None = None
    ) -> Iterator[ArticleOut]:
        """List feed articles."""
        return self.transport.pages(
            Call(
                "GET", path_of("/api/v1/feeds/{id}/articles", id=id), {"limit": limit, "cursor": cursor, "order": order}
            )
        )

    def list_feed_events(
        self,
        id: int,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["-id", "id"] | None = None,
        after: int | None = None,
    ) -> Iterator[SubjectEventOut]:
        """List the history of a feed, with the actions of people."""
        return self.transport.pages(
            Call(
                "GET",
                path_of("/api/v1/feeds/{id}/events", id=id),
                {"limit": limit, "cursor": cursor, "order": order, "after": after},
            )
        )

    def list_feeds(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["-id", "id"] | None = None,
        state: Literal["failing", "paused", "due"] | None = None,
    ) -> Iterator[FeedOut]:
        """List feeds."""
        return self.transport.pages(
            Call("GET", path_of("/api/v1/feeds"), {"limit": limit, "cursor": cursor, "order": order, "state": state})
        )

    def list_fields(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["-id", "id"] | None = None,
        state: Literal["to_look_at", "corrected"] | None = None,
        workspace_id: int | None = None,
        document_id: int | None = None,
        name: str | None = None,
    ) -> Iterator[FieldFoundOut]:
        """List the extracted fields of all documents that you can see."""
        return self.transport.pages(
            Call(
                "GET",
                path_of("/api/v1/fields"),
                {
                    "limit": limit,
                    "cursor": cursor,
                    "order": order,
                    "state": state,
                    "workspace_id": workspace_id,
                    "document_id": document_id,
                    "name": name,
                },
            )
        )

    def list_job_events(
        self,
        name: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["-id", "id"] | None = None,
        after: int | None = None,
    ) -> Iterator[SubjectEventOut]:
        """List the history of a job."""
        return self.transport.pages(
            Call(
                "GET",
                path_of("/api/v1/jobs/{name}/events", name=name),
                {"limit": limit, "cursor": cursor, "order": order, "after": after},
            )
        )

    def list_job_runs(
        self,
        name: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["-id", "id"] | None = None,
        status: Literal["running", "success", "failed", "skipped_timeout"] | None = None,
    ) -> Iterator[JobRunOut]:
        """List the runs of a job, one per slot that a worker claimed."""
        return self.transport.pages(
            Call(
                "GET",
                path_of("/api/v1/jobs/{name}/runs", name=name),
                {"limit": limit, "cursor": cursor, "order": order, "status": status},
            )
        )

    def list_jobs(self) -> Iterator[JobOut]:
        """List the jobs that the code declares or once declared, on a single page."""
        return self.transport.pages(Call("GET", path_of("/api/v1/jobs"), {}))

    def list_run_events(
        self,
        id: int,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["-id", "id"] | None = None,
        after: int | None = None,
        kind: str | None = None,
        level: int | None = None,
    ) -> Iterator[SubjectEventOut]:
        """List run events."""
        return self.transport.pages(
            Call(
                "GET",
                path_of("/api/v1/runs/{id}/events", id=id),
                {"limit": limit, "cursor": cursor, "order": order, "after": after, "kind": kind, "level": level},
            )
        )

    def list_runs(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["-id", "id"] | None = None,
        workspace_id: int | None = None,
        status: Literal["queued", "running", "succeeded", "failed", "cancelled"] | None = None,
        outcome: Literal["queued", "running", "succeeded", "failed", "cancelled", "timed_out"] | None = None,
        configuration_id: int | None = None,
        document_id: int | None = None,
        build_id: int | None = None,
        created_after: str | None = None,
        created_before: str | None = None,
    ) -> Iterator[RunOut]:
        """List runs."""
        return self.transport.pages(
            Call(
                "GET",
                path_of("/api/v1/runs"),
                {
                    "limit": limit,
                    "cursor": cursor,
                    "order": order,
                    "workspace_id": workspace_id,
                    "status": status,
                    "outcome": outcome,
                    "configuration_id": configuration_id,
                    "document_id": document_id,
                    "build_id": build_id,
                    "created_after": created_after,
                    "created_before": created_before,
                },
            )
        )

    def list_senders(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["-id", "id"] | None = None,
        workspace_id: int | None = None,
    ) -> Iterator[SenderOut]:
        """List the senders of documents that you can see."""
        return self.transport.pages(
            Call(
                "GET",
                path_of("/api/v1/senders"),
                {"limit": limit, "cursor": cursor, "order": order, "workspace_id": workspace_id},
            )
        )

    def list_table_rows(
        self, id: int, name: str, *, cursor: str | None = None, limit: int | None = None
    ) -> Iterator[TableRowOut]:
        """List rows of a table in their order, with people's corrections."""
        return self.transport.pages(
            Call(
                "GET",
                path_of("/api/v1/documents/{id}/tables/{name}/rows", id=id, name=name),
                {"cursor": cursor, "limit": limit},
            )
        )

    def list_tables(self, id: int) -> TablesOut:
        """List the tables of a document."""
        return cast("TablesOut", self.transport.json(Call("GET", path_of("/api/v1/documents/{id}/tables", id=id), {})))

    def list_tokens(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["-id", "id"] | None = None,
        workspace_id: int | None = None,
    ) -> Iterator[TokenOut]:
        """List your tokens and, if you are an admin of a workspace, all of its tokens."""
        return self.transport.pages(
            Call(
                "GET",
                path_of("/api/v1/tokens"),
                {"limit": limit, "cursor": cursor, "order": order, "workspace_id": workspace_id},
            )
        )

    def list_type_problems(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["-id", "id"] | None = None,
        state: Literal["open"] | None = None,
        workspace_id: int | None = None,
        document_id: int | None = None,
        code: str | None = None,
    ) -> Iterator[ProblemOfDocumentOut]:
        """List what is wrong with the documents that you can see."""
        return self.transport.pages(
            Call(
                "GET",
                path_of("/api/v1/problems"),
                {
                    "limit": limit,
                    "cursor": cursor,
                    "order": order,
                    "state": state,
                    "workspace_id": workspace_id,
                    "document_id": document_id,
                    "code": code,
                },
            )
        )

    def list_types(self, *, workspace_id: int | None = None) -> DocumentTypesOut:
        """List the document types of a workspace with their fields: its own, then the built-in ones."""
        return cast(
            "DocumentTypesOut",
            self.transport.json(Call("GET", path_of("/api/v1/document-types"), {"workspace_id": workspace_id})),
        )

    def list_webhook_deliveries(
        self,
        id: int,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["-id", "id"] | None = None,
        status: Literal["queued", "sending", "delivered", "failed"] | None = None,
        topic: Literal[
            "run.succeeded",
            "run.failed",
            "run.cancelled",
            "build.ready",
            "build.failed",
            "build.cancelled",
            "document.processed",
            "document.failed",
        ]
        | Literal["ping"]
        | None
        | None = None,
    ) -> Iterator[DeliveryOut]:
        """List webhook deliveries."""
        return self.transport.pages(
            Call(
                "GET",
                path_of("/api/v1/webhooks/{id}/deliveries", id=id),
                {"limit": limit, "cursor": cursor, "order": order, "status": status, "topic": topic},
            )
        )

    def list_webhooks(
        self, id: int, *, limit: int | None = None, cursor: str | None = None, order: Literal["-id", "id"] | None = None
    ) -> Iterator[WebhookOut]:
        """List webhooks."""
        return self.transport.pages(
            Call(
                "GET",
                path_of("/api/v1/workspaces/{id}/webhooks", id=id),
                {"limit": limit, "cursor": cursor, "order": order},
            )
        )

    def list_workers(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["-id", "id"] | None = None,
        state: Literal["alive", "stopped", "silent"] | None = None,
    ) -> Iterator[WorkerOut]:
        """List workers."""
        return self.transport.pages(
            Call("GET", path_of("/api/v1/workers"), {"limit": limit, "cursor": cursor, "order": order, "state": state})
        )

    def list_workspace_members(
        self, id: int, *, limit: int | None = None, cursor: str | None = None, order: Literal["-id", "id"] | None = None
    ) -> Iterator[MemberOut]:
        """List the members of a workspace. Only its admins can."""
        return self.transport.pages(
            Call(
                "GET",
                path_of("/api/v1/workspaces/{id}/members", id=id),
                {"limit": limit, "cursor": cursor, "order": order},
            )
        )

    def list_workspaces(
        self, *, limit: int | None = None, cursor: str | None = None, order: Literal["-id", "id"] | None = None
    ) -> Iterator[WorkspaceOut]:
        """List workspaces."""
        return self.transport.pages(
            Call("GET", path_of("/api/v1/workspaces"), {"limit": limit, "cursor": cursor, "order": order})
        )

    def pause_feed(self, id: int, body: FeedPause | None) -> FeedOut:
        """Pause a feed. It is not fetched until it is resumed."""
        return cast(
            "FeedOut", self.transport.json(Call("POST", path_of("/api/v1/feeds/{id}/pause", id=id), {}, body=body))
        )

    def pause_job(self, name: str, body: JobPause | None) -> JobDetailOut:
        """Pause a job. Its slots are skipped until it is resumed."""
        return cast(
            "JobDetailOut",
            self.transport.json(Call("POST", path_of("/api/v1/jobs/{name}/pause", name=name), {}, body=body)),
        )

    def pause_queue(self, body: Reason | None) -> QueueOut:
        """Pause the queue. Running runs continue and new runs are accepted, but none starts."""
        return cast("QueueOut", self.transport.json(Call("POST", path_of("/api/v1/queue/pause"), {}, body=body)))

    def pause_webhook(self, id: int) -> WebhookOut:
        """Pause a webhook. Deliveries wait until it is resumed."""
        return cast("WebhookOut", self.transport.json(Call("POST", path_of("/api/v1/webhooks/{id}/pause", id=id), {})))

    def ping_webhook(self, id: int, *, idempotency_key: str | None = None) -> DeliveryOut:
        """Send a test delivery with the topic `ping` to a webhook."""
        return cast(
            "DeliveryOut",
            self.transport.json(
                Call(
                    "POST",
                    path_of("/api/v1/webhooks/{id}/ping", id=id),
                    {},
                    creates=True,
                    headers={"Idempotency-Key": idempotency_key} if idempotency_key else None,
                )
            ),
        )

    def preview_sender(self, id: int) -> SenderPreviewOut:
        """Show what the lessons of a sender would change on its latest documents. Nothing is changed."""
        return cast(
            "SenderPreviewOut", self.transport.json(Call("GET", path_of("/api/v1/senders/{id}/preview", id=id), {}))
        )

    def rehearse_workspace(self, id: int, *, days: int | None = None) -> RehearsalOut:
        """Preview what a retention policy would purge now, without purging."""
        return cast(
            "RehearsalOut",
            self.transport.json(Call("GET", path_of("/api/v1/workspaces/{id}/retention", id=id), {"days": days})),
        )

    def remove_feed(self, id: int) -> FeedOut:
        """Remove a feed that has no articles, and return it. Pause a feed with articles instead."""
        return cast("FeedOut", self.transport.json(Call("DELETE", path_of("/api/v1/feeds/{id}", id=id), {})))

    def remove_webhook(self, id: int) -> WebhookOut:
        """Remove a webhook. Waiting deliveries are not sent."""
        return cast("WebhookOut", self.transport.json(Call("DELETE", path_of("/api/v1/webhooks/{id}", id=id), {})))

    def rename_feed(self, id: int, body: FeedRenaming) -> FeedOut:
        """Rename a feed."""
        return cast("FeedOut", self.transport.json(Call("PATCH", path_of("/api/v1/feeds/{id}", id=id), {}, body=body)))

    def replace_configuration_package(self, id: int) -> ConfigurationStoredOut:
        """Replace the contents of a configuration with a package, which is a zip file. The name in it is ignored."""
        return cast(
            "ConfigurationStoredOut",
            self.transport.json(Call("PUT", path_of("/api/v1/configurations/{id}/package", id=id), {})),
        )

    def reprocess_document(self, id: int, *, idempotency_key: str | None = None) -> DocumentOut:
        """Process a document again and replace its text, fields and chunks."""
        return cast(
            "DocumentOut",
            self.transport.json(
                Call(
                    "POST",
                    path_of("/api/v1/documents/{id}/reprocess", id=id),
                    {},
                    creates=True,
                    headers={"Idempotency-Key": idempotency_key} if idempotency_key else None,
                )
            ),
        )

    def resend_webhook_delivery(self, id: int, *, idempotency_key: str | None = None) -> DeliveryOut:
        """Send a delivery again, as a new delivery of the same event."""
        return cast(
            "DeliveryOut",
            self.transport.json(
                Call(
                    "POST",
                    path_of("/api/v1/deliveries/{id}/resend", id=id),
                    {},
                    creates=True,
                    headers={"Idempotency-Key": idempotency_key} if idempotency_key else None,
                )
            ),
        )

    def resume_feed(self, id: int) -> FeedOut:
        """Resume a feed and make it due now."""
        return cast("FeedOut", self.transport.json(Call("POST", path_of("/api/v1/feeds/{id}/resume", id=id), {})))

    def resume_job(self, name: str) -> JobDetailOut:
        """Resume a job. It continues with its next slot."""
        return cast(
            "JobDetailOut", self.transport.json(Call("POST", path_of("/api/v1/jobs/{name}/resume", name=name), {}))
        )

    def resume_queue(self) -> QueueOut:
        """Resume queue."""
        return cast("QueueOut", self.transport.json(Call("POST", path_of("/api/v1/queue/resume"), {})))

    def resume_webhook(self, id: int) -> WebhookOut:
        """Resume webhook."""
        return cast("WebhookOut", self.transport.json(Call("POST", path_of("/api/v1/webhooks/{id}/resume", id=id), {})))

    def revoke_token(self, id: int) -> TokenOut:
        """Revoke a token. It is refused from the next request on."""
        return cast("TokenOut", self.transport.json(Call("POST", path_of("/api/v1/tokens/{id}/revoke", id=id), {})))

    def rotate_webhook_secret(self, id: int, body: Rotation | None) -> WithSecret:
        """Create a new secret, shown only once. The previous one stays valid for 24 hours."""
        return cast(
            "WithSecret",
            self.transport.json(Call("POST", path_of("/api/v1/webhooks/{id}/rotate", id=id), {}, body=body)),
        )

    def run_again(self, id: int, *, idempotency_key: str | None = None) -> RunOut:
        """Start a new run of the same configuration, in its current version, for the same document."""
        return cast(
            "RunOut",
            self.transport.json(
                Call(
                    "POST",
                    path_of("/api/v1/runs/{id}/again", id=id),
                    {},
                    creates=True,
                    headers={"Idempotency-Key": idempotency_key} if idempotency_key else None,
                )
            ),
        )

    def set_workspace_policy(self, id: int, body: Policy) -> WorkspaceDetail:
        """Set for how many days a workspace keeps the content of its documents."""
        return cast(
            "WorkspaceDetail",
            self.transport.json(Call("PATCH", path_of("/api/v1/workspaces/{id}", id=id), {}, body=body)),
        )

    def show_artifact(self, id: int) -> ArtifactOut:
        """Show artifact."""
        return cast("ArtifactOut", self.transport.json(Call("GET", path_of("/api/v1/artifacts/{id}", id=id), {})))

    def show_brief(self, name: str) -> BriefDetailOut:
        """Show a brief with its stories, most important first, and the reasons for their ranks."""
        return cast("BriefDetailOut", self.transport.json(Call("GET", path_of("/api/v1/briefs/{name}", name=name), {})))

    def show_build(self, id: int) -> BuildDetailOut:
        """Show a build with its package versions and the runs that wait for it."""
        return cast("BuildDetailOut", self.transport.json(Call("GET", path_of("/api/v1/builds/{id}", id=id), {})))

    def show_build_log(
        self,
        id: int,
        to: BinaryIO,
        *,
        after: int | None = None,
        limit: int | None = None,
        stream: Literal["stdout", "stderr", "log"] | None = None,
        format: Literal["text", "json"] | None = None,
    ) -> int:
        """Show the output of a build, line by line."""
        return self.transport.download(
            Call(
                "GET",
                path_of("/api/v1/builds/{id}/log", id=id),
                {"after": after, "limit": limit, "stream": stream, "format": format},
            ),
            to,
        )

    def show_cluster(self, id: int) -> ClusterDetailOut:
        """Show cluster."""
        return cast("ClusterDetailOut", self.transport.json(Call("GET", path_of("/api/v1/clusters/{id}", id=id), {})))

    def show_configuration(self, id: int) -> ConfigurationDetail:
        """Show a configuration with the names of its files. The package has their contents."""
        return cast(
            "ConfigurationDetail", self.transport.json(Call("GET", path_of("/api/v1/configurations/{id}", id=id), {}))
        )

    def show_document(self, id: int) -> DocumentOut:
        """Show the metadata of a document. With If-None-Match, an unchanged document answers 304."""
        return cast("DocumentOut", self.transport.json(Call("GET", path_of("/api/v1/documents/{id}", id=id), {})))

    def show_document_text(self, id: int, *, offset: int | None = None, limit: int | None = None) -> DocumentTextOut:
        """Show the extracted text of a document in parts of up to `limit` characters."""
        return cast(
            "DocumentTextOut",
            self.transport.json(
                Call("GET", path_of("/api/v1/documents/{id}/text", id=id), {"offset": offset, "limit": limit})
            ),
        )

    def show_export_sender(self, id: int) -> SenderFileOut:
        """Get what is known about a sender, to import it elsewhere."""
        return cast(
            "SenderFileOut", self.transport.json(Call("GET", path_of("/api/v1/senders/{id}/export", id=id), {}))
        )

    def show_feed(self, id: int) -> FeedDetailOut:
        """Show feed."""
        return cast("FeedDetailOut", self.transport.json(Call("GET", path_of("/api/v1/feeds/{id}", id=id), {})))

    def show_feed_export(self, to: BinaryIO) -> int:
        """Export all feeds as OPML for other readers."""
        return self.transport.download(Call("GET", path_of("/api/v1/feeds/export"), {}), to)

    def show_fields(self, id: int) -> DocumentFieldsOut:
        """List the fields of a document in its order, then the fields that only people have added."""
        return cast(
            "DocumentFieldsOut", self.transport.json(Call("GET", path_of("/api/v1/documents/{id}/fields", id=id), {}))
        )

    def show_forecast_run(self, id: int) -> ForecastOut:
        """Estimate when a queued run will start."""
        return cast("ForecastOut", self.transport.json(Call("GET", path_of("/api/v1/runs/{id}/forecast", id=id), {})))

    def show_get_sender(self, id: int) -> SenderDetailOut:
        """Get a sender with what names it, and what was learned about it."""
        return cast("SenderDetailOut", self.transport.json(Call("GET", path_of("/api/v1/senders/{id}", id=id), {})))

    def show_health(self) -> HealthOut:
        """Check that the database answers in time and that the disk has space. No token is needed."""
        return cast("HealthOut", self.transport.json(Call("GET", path_of("/api/v1/health"), {})))

    def show_health_details(self) -> HealthDetailsOut:
        """Show the queues and the workers of all workspaces together."""
        return cast("HealthDetailsOut", self.transport.json(Call("GET", path_of("/api/v1/health/details"), {})))

    def show_job(self, name: str) -> JobDetailOut:
        """Show job."""
        return cast("JobDetailOut", self.transport.json(Call("GET", path_of("/api/v1/jobs/{name}", name=name), {})))

    def show_job_ledger(
        self, name: str, *, from_: str | None = None, to: str | None = None, limit: int | None = None
    ) -> LedgerOut:
        """Show the result of each slot of a job, newest first."""
        return cast(
            "LedgerOut",
            self.transport.json(
                Call("GET", path_of("/api/v1/jobs/{name}/ledger", name=name), {"from": from_, "to": to, "limit": limit})
            ),
        )

    def show_job_run(self, name: str, id: int) -> JobRunOut:
        """Show job run."""
        return cast(
            "JobRunOut",
            self.transport.json(Call("GET", path_of("/api/v1/jobs/{name}/runs/{id}", name=name, id=id), {})),
        )

    def show_job_why(self, name: str) -> ExplanationOut:
        """Explain why the slot of a job has not started, what blocks it, and since when."""
        return cast(
            "ExplanationOut", self.transport.json(Call("GET", path_of("/api/v1/jobs/{name}/why", name=name), {}))
        )

    def show_me(self) -> MeOut:
        """Show the caller, with the scopes of the token and the roles in workspaces."""
        return cast("MeOut", self.transport.json(Call("GET", path_of("/api/v1/me"), {})))

    def show_queue(self) -> QueueOut:
        """Show the size of the queue of runs, and whether it is paused."""
        return cast("QueueOut", self.transport.json(Call("GET", path_of("/api/v1/queue"), {})))

    def show_run(self, id: int) -> RunDetailOut:
        """Show a run with its fields and artifacts."""
        return cast("RunDetailOut", self.transport.json(Call("GET", path_of("/api/v1/runs/{id}", id=id), {})))

    def show_run_log(
        self,
        id: int,
        to: BinaryIO,
        *,
        after: int | None = None,
        limit: int | None = None,
        stream: Literal["stdout", "stderr", "log"] | None = None,
        format: Literal["text", "json"] | None = None,
    ) -> int:
        """Show the output and the log of a run, line by line."""
        return self.transport.download(
            Call(
                "GET",
                path_of("/api/v1/runs/{id}/log", id=id),
                {"after": after, "limit": limit, "stream": stream, "format": format},
            ),
            to,
        )

    def show_table(self, id: int, name: str) -> TableOut:
        """Show a table without its rows."""
        return cast(
            "TableOut",
            self.transport.json(Call("GET", path_of("/api/v1/documents/{id}/tables/{name}", id=id, name=name), {})),
        )

    def show_token(self, id: int) -> TokenOut:
        """Show token."""
        return cast("TokenOut", self.transport.json(Call("GET", path_of("/api/v1/tokens/{id}", id=id), {})))

    def show_webhook(self, id: int) -> WebhookOut:
        """Show webhook."""
        return cast("WebhookOut", self.transport.json(Call("GET", path_of("/api/v1/webhooks/{id}", id=id), {})))

    def show_webhook_delivery(self, id: int) -> DeliveryDetail:
        """Show webhook delivery."""
        return cast("DeliveryDetail", self.transport.json(Call("GET", path_of("/api/v1/deliveries/{id}", id=id), {})))

    def show_worker(self, id: int) -> WorkerOut:
        """Show worker."""
        return cast("WorkerOut", self.transport.json(Call("GET", path_of("/api/v1/workers/{id}", id=id), {})))

    def show_workspace(self, id: int) -> WorkspaceDetail:
        """Show workspace."""
        return cast("WorkspaceDetail", self.transport.json(Call("GET", path_of("/api/v1/workspaces/{id}", id=id), {})))

    def submit_run(self, id: int, body: Submission, *, idempotency_key: str | None = None) -> RunOut:
        """Queue a run of this configuration for a document of the same workspace."""
        return cast(
            "RunOut",
            self.transport.json(
                Call(
                    "POST",
                    path_of("/api/v1/configurations/{id}/runs", id=id),
                    {},
                    body=body,
                    creates=True,
                    headers={"Idempotency-Key": idempotency_key} if idempotency_key else None,
                )
            ),
        )

    def submit_run_at_root(self, id: int, body: Submission, *, idempotency_key: str | None = None) -> RunOut:
        """Queue a run of this configuration for a document of the same workspace."""
        return cast(
            "RunOut",
            self.transport.json(
                Call(
                    "POST",
                    path_of("/configurations/{id}/runs", id=id),
                    {},
                    body=body,
                    creates=True,
                    headers={"Idempotency-Key": idempotency_key} if idempotency_key else None,
                )
            ),
        )

    def submit_runs(self, body: Submissions, *, idempotency_key: str | None = None) -> RunsOut:
        """Queue a run of one configuration for each of these documents: all of them or none."""
        return cast(
            "RunsOut",
            self.transport.json(
                Call(
                    "POST",
                    path_of("/api/v1/runs"),
                    {},
                    body=body,
                    creates=True,
                    headers={"Idempotency-Key": idempotency_key} if idempotency_key else None,
                )
            ),
        )

    def switch_sender_lesson_off(self, id: int) -> LessonOut:
        """Stop using a lesson. Its values are removed from all documents."""
        return cast("LessonOut", self.transport.json(Call("POST", path_of("/api/v1/lessons/{id}/off", id=id), {})))

    def switch_sender_lesson_on(self, id: int) -> LessonOut:
        """Use a lesson again, for new documents."""
        return cast("LessonOut", self.transport.json(Call("POST", path_of("/api/v1/lessons/{id}/on", id=id), {})))

    def switch_sender_off(self, id: int) -> SenderOut:
        """Stop learning about a sender and using its lessons. Their values are removed from all documents."""
        return cast("SenderOut", self.transport.json(Call("POST", path_of("/api/v1/senders/{id}/off", id=id), {})))

    def switch_sender_on(self, id: int) -> SenderOut:
        """Use the lessons of a sender again, for new documents."""
        return cast("SenderOut", self.transport.json(Call("POST", path_of("/api/v1/senders/{id}/on", id=id), {})))

    def take_feed_in(
        self,
        file: File,
        progress: Progress | None = None,
        *,
        rehearse: bool | None = None,
        idempotency_key: str | None = None,
    ) -> ImportOut:
        """Add all feeds of an OPML list, as exported by other readers. Each feed has its own result."""
        return cast(
            "ImportOut",
            self.transport.json(
                Call(
                    "POST",
                    path_of("/api/v1/feeds/import"),
                    {"rehearse": rehearse},
                    body={},
                    files={"file": file},
                    progress=progress,
                    creates=True,
                    headers={"Idempotency-Key": idempotency_key} if idempotency_key else None,
                )
            ),
        )

    def trigger_job(self, name: str, body: Trigger | None, *, idempotency_key: str | None = None) -> DueSlotOut:
        """Run a job now, or run one of its slots. The ledger shows the result."""
        return cast(
            "DueSlotOut",
            self.transport.json(
                Call(
                    "POST",
                    path_of("/api/v1/jobs/{name}/runs", name=name),
                    {},
                    body=body,
                    creates=True,
                    headers={"Idempotency-Key": idempotency_key} if idempotency_key else None,
                )
            ),
        )

    def upload_at_root(
        self,
        file: File,
        workspace: int | None = None,
        again: bool | None = None,
        progress: Progress | None = None,
        *,
        idempotency_key: str | None = None,
    ) -> DocumentOut:
        """Upload one file as a document. It is then processed."""
        return cast(
            "DocumentOut",
            self.transport.json(
                Call(
                    "POST",
                    path_of("/documents"),
                    {},
                    body={
                        name: value
                        for name, value in {"workspace": workspace, "again": again}.items()
                        if value is not None
                    },
                    files={"file": file},
                    progress=progress,
                    creates=True,
                    headers={"Idempotency-Key": idempotency_key} if idempotency_key else None,
                )
            ),
        )

    def upload_document(
        self,
        file: File,
        workspace: int | None = None,
        again: bool | None = None,
        progress: Progress | None = None,
        *,
        idempotency_key: str | None = None,
    ) -> DocumentOut:
        """Upload one file as a document. It is then processed."""
        return cast(
            "DocumentOut",
            self.transport.json(
                Call(
                    "POST",
                    path_of("/api/v1/documents"),
                    {},
                    body={
                        name: value
                        for name, value in {"workspace": workspace, "again": again}.items()
                        if value is not None
                    },
                    files={"file": file},
                    progress=progress,
                    creates=True,
                    headers={"Idempotency-Key": idempotency_key} if idempotency_key else None,
                )
            ),
        )

    def withdraw_field(self, id: int, name: str) -> DocumentFieldOut:
        """Withdraw a correction. The extracted value applies again."""
        return cast(
            "DocumentFieldOut",
            self.transport.json(Call("DELETE", path_of("/api/v1/documents/{id}/fields/{name}", id=id, name=name), {})),
        )

    def withdraw_table_cell(self, id: int, name: str, row: int, column: str) -> CellOut:
        """Withdraw the correction of a cell. The extracted text applies again."""
        return cast(
            "CellOut",
            self.transport.json(
                Call(
                    "DELETE",
                    path_of(
                        "/api/v1/documents/{id}/tables/{name}/rows/{row}/{column}",
                        id=id,
                        name=name,
                        row=row,
                        column=column,
                    ),
                    {},
                )
            ),
        )
