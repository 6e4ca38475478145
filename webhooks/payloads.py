"""Builds the payloads of deliveries: what ended, how, and links to more. They never include contents of documents."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from builds.models import Build
from documents.models import Document
from runs.models import Run
from webhooks.models import PING, Topic, Webhook
from work.operations import written

# The events that end something, with their topics.
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


@dataclass(frozen=True)
class Ended:
    """An event that ends something."""

    id: int
    at: datetime
    kind: str
    subject_id: int
    status: str
    topic: str


def workspaces_of(ended: Iterable[Ended]) -> dict[Ended, tuple[int, dict[str, Any]]]:
    """Return the workspace and payload of each event. Subjects that no longer exist are left out."""
    by_kind: dict[str, list[Ended]] = defaultdict(list)
    for each in ended:
        by_kind[each.kind].append(each)
    told = {}
    for kind, events in by_kind.items():
        rows = _ROWS[kind]({each.subject_id for each in events})
        for each in events:
            if row := rows.get(each.subject_id):
                told[each] = _told(each, row)
    return told


def of_ping(webhook: Webhook, at: datetime) -> dict[str, Any]:
    subject = {"kind": "webhook", "id": webhook.pk}
    links = {"self": f"/api/v1/webhooks/{webhook.pk}"}
    about = {"event": None, "topic": PING, "at": written.moment(at), "workspace_id": webhook.workspace_id}
    return about | {"subject": subject, "links": links}


def _told(ended: Ended, row: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
    workspace_id = row["workspace"]
    is_timeout = ended.kind == "run" and row["failure_type"] == Run.Failure.TIMED_OUT
    told = {
        "event": ended.id,
        "topic": str(ended.topic),
        "at": written.moment(ended.at),
        "workspace_id": workspace_id,
        "subject": {"kind": ended.kind, "id": ended.subject_id},
        "status": ended.status,
        "outcome": "timed_out" if is_timeout else ended.status,
        "failure_type": row.get("failure_type") or None,
        **{name: written.moment(at) if (at := row.get(name)) else None for name in _TIMES},
        "links": {"self": f"/api/v1/{ended.kind}s/{ended.subject_id}"},
    }
    for name, column in _ALSO.items():
        if id := row.get(column):
            told["links"][name] = f"/api/v1/{name}s/{id}"
    return workspace_id, told


_TIMES = ("created_at", "started_at", "finished_at")
_ALSO = {"configuration": "configuration_id", "document": "input_document_id"}


def _runs(ids: Iterable[int]) -> dict[int, Any]:
    columns = ("workspace_id", "failure_type", *_TIMES, *_ALSO.values())
    return _named("workspace_id", Run.objects.filter(pk__in=ids).values("pk", *columns))


def _builds(ids: Iterable[int]) -> dict[int, Any]:
    columns = ("configuration__workspace_id", "configuration_id", "failure_type", *_TIMES)
    return _named("configuration__workspace_id", Build.objects.filter(pk__in=ids).values("pk", *columns))


def _documents(ids: Iterable[int]) -> dict[int, Any]:
    return _named("workspace_id", Document.objects.filter(pk__in=ids).values("pk", "workspace_id", "created_at"))


def _named(column: str, rows: Iterable[Any]) -> dict[int, Any]:
    return {row["pk"]: row | {"workspace": row[column]} for row in rows}


_ROWS = {"run": _runs, "build": _builds, "document": _documents}
