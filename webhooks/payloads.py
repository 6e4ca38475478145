"""Builds the payloads of deliveries: what ended, how it ended, and links to details. Payloads never include the
contents of documents.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Model

from builds.models import Build
from documents.models import Document
from runs.models import Run
from webhooks.models import PING, Topic, Webhook
from work.operations import encoding
from work.tail import EventRow

# The events that end a piece of work, with their topics.
TOPICS = {
    ("run", "RUN_SUCCEEDED"): Topic.RUN_SUCCEEDED,
    ("run", "RUN_FAILED"): Topic.RUN_FAILED,
    ("run", "RUN_CANCELLED"): Topic.RUN_CANCELLED,
    ("build", "BUILD_READY"): Topic.BUILD_READY,
    ("build", "BUILD_FAILED"): Topic.BUILD_FAILED,
    ("build", "BUILD_CANCELLED"): Topic.BUILD_CANCELLED,
    ("document", "DOCUMENT_PROCESSED"): Topic.DOCUMENT_PROCESSED,
    ("document", "DOCUMENT_FAILED"): Topic.DOCUMENT_FAILED,
}
_TIMES = ("created_at", "started_at", "finished_at")
# Further links, each with the column that has the ID of its target.
_LINKS = {"configuration": "configuration_id", "document": "input_document_id"}
# For each kind of subject: its model, the column of its workspace, and the columns of its payload.
_SUBJECTS: dict[str, tuple[type[Model], str, tuple[str, ...]]] = {
    "run": (Run, "workspace_id", ("failure_type", *_TIMES, *_LINKS.values())),
    "build": (Build, "configuration__workspace_id", ("configuration_id", "failure_type", *_TIMES)),
    "document": (Document, "workspace_id", ("created_at",)),
}


def payloads_of(events: Sequence[EventRow]) -> Iterator[tuple[EventRow, int, dict[str, Any]]]:
    """Yield each event with its workspace and payload. Subjects that no longer exist are left out."""
    for kind in dict.fromkeys(event.subject_kind for event in events):
        model, workspace, columns = _SUBJECTS[kind]
        mine = [event for event in events if event.subject_kind == kind]
        rows = model._default_manager.filter(pk__in={event.subject_id for event in mine})
        row_of = {row["pk"]: row for row in rows.values("pk", workspace, *columns)}
        for event in mine:
            if row := row_of.get(event.subject_id):
                yield event, row[workspace], _payload(event, row[workspace], row)


def ping_payload(webhook: Webhook, at: datetime) -> dict[str, Any]:
    return {
        "event": None,
        "topic": PING,
        "at": encoding.moment(at),
        "workspace_id": webhook.workspace_id,
        "subject": {"kind": "webhook", "id": webhook.pk},
        "links": {"self": f"/api/v1/webhooks/{webhook.pk}"},
    }


def _payload(event: EventRow, workspace_id: int, row: dict[str, Any]) -> dict[str, Any]:
    kind, id = event.subject_kind, event.subject_id
    is_timeout = kind == "run" and row["failure_type"] == Run.Failure.TIMED_OUT
    links = {"self": f"/api/v1/{kind}s/{id}"}
    links |= {name: f"/api/v1/{name}s/{row[column]}" for name, column in _LINKS.items() if row.get(column)}
    return {
        "event": event.id,
        "topic": TOPICS[kind, event.kind].value,
        "at": encoding.moment(event.at),
        "workspace_id": workspace_id,
        "subject": {"kind": kind, "id": id},
        "status": event.to_status,
        "outcome": "timed_out" if is_timeout else event.to_status,
        "failure_type": row.get("failure_type") or None,
        **{name: encoding.moment(at) if (at := row.get(name)) else None for name in _TIMES},
        "links": links,
    }
