"""How each route of the API is called. tests/api/test_every_route.py fails for a route that is missing here.

A row describes a valid call. A function in it is called with a workspace and creates a row of that workspace: the tests
also call the route with rows of another workspace. The fields of `Row(...)`:

* `answers`: the status of the valid call;
* `ids`: the parameters of the path by name; `Shared(make)` for rows that all workspaces share;
* `body`, `query`: the other parameters; functions may appear anywhere in them;
* `files`: the files of a form by name, each with a function that makes its bytes; `body` is the rest of the form;
* `raw`: a function that makes the bytes of a body that is not JSON, and their type;
* `may`: permissions required in addition to the scope, for rows that the installation shares;
* `hidden`: a caller without permission does not see the row either;
* `anybody`: no authentication required.
"""

import io
from dataclasses import dataclass, field
from typing import Any

from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from api import tokens
from builds import packages
from builds.packages import Package
from documents import intake
from tests.documents.samples import PDF
from tests.factories import (
    ArtifactFactory,
    BriefFactory,
    BuildFactory,
    CellCorrectionFactory,
    ClusterFactory,
    ConfigurationFactory,
    DeliveryFactory,
    DocumentFactory,
    DocumentFieldFactory,
    DocumentProblemFactory,
    FeedFactory,
    FieldCorrectionFactory,
    JobRunFactory,
    RunFactory,
    SenderFactory,
    SenderIdentityFactory,
    SenderLessonFactory,
    UserFactory,
    WebhookFactory,
    table_of,
)
from work import clock
from work.models import Worker


@dataclass(frozen=True)
class Shared:
    """Creates a row that belongs to all workspaces."""

    make: Any

    def __call__(self, workspace):
        return self.make()


@dataclass(frozen=True)
class Row:
    answers: int = 200
    ids: dict[str, Any] = field(default_factory=dict)
    body: Any = None
    query: dict[str, Any] = field(default_factory=dict)
    files: dict[str, Any] | None = None
    raw: tuple[Any, str] | None = None
    may: tuple[str, ...] = ()
    # The required role; by default the role that matches the scope.
    role: str | None = None
    # Scopes required in addition to the declared one.
    scopes: tuple[str, ...] = ()
    hidden: bool = False
    anybody: bool = False


INGESTION = "rss_ingestion"
SLOT = "2026-01-01T00:00:00Z"
EXPORTED = {
    "version": 1, "name": "Nordlicht", "identities": [{"kind": "vat_id", "value": "DE136695976"}], "lessons": [],
}  # fmt: skip
OPML = b'<opml version="2.0"><body><outline text="x" xmlUrl="https://news.example.com/feed.xml"/></body></opml>'


def configuration(workspace):
    return ConfigurationFactory(workspace=workspace)


def document(workspace, status=None):
    return DocumentFactory(workspace=workspace, status=status)


def run(workspace, status=None):
    configuration = ConfigurationFactory(workspace=workspace)
    return RunFactory(configuration=configuration, input_document__workspace=workspace, status=status)


def in_status(make, status):
    return lambda workspace: make(workspace, status=status)


def workspace_itself(workspace):
    return workspace


def stored(workspace):
    """Return a document with a file that no other document has."""
    return intake.receive(workspace, io.BytesIO(PDF + b"\n%% %d" % workspace.pk), "invoice.pdf", "", "olga")


def with_field(workspace):
    return DocumentFieldFactory(document=document(workspace), name="total").document


def with_correction(workspace):
    return FieldCorrectionFactory(document=document(workspace), name="total").document


def problem(workspace):
    return DocumentProblemFactory(document=document(workspace))


def with_table(workspace):
    return table_of(document(workspace)).document


def with_corrected_cell(workspace):
    return CellCorrectionFactory(document=with_table(workspace), row=1).document


def sender(workspace):
    return SenderIdentityFactory(sender__workspace=workspace).sender


def sender_off(workspace):
    return SenderFactory(workspace=workspace, switched_off_at=clock.now(), switched_off_by="olga")


def lesson(workspace):
    return SenderLessonFactory(sender=sender(workspace))


def lesson_off(workspace):
    off = {"switched_off_at": clock.now(), "switched_off_by": "olga"}
    return SenderLessonFactory(sender=sender(workspace), **off)


def letter():
    return b"Dear Ms Example, this is a letter."


def package():
    whole = io.BytesIO()
    packages.write_zip(Package("packed", "main", "", "", {"main.py": "def main(document):\n    return {}\n"}), whole)
    return whole.getvalue()


def token_of_olga(workspace):
    return tokens.issue(workspace, UserFactory(), f"token {workspace.pk}", ["read"], actor="olga")[0]


def worker_row():
    own = {"name": "w1", "host": "here", "machine": "m", "pid": 1, "pid_started": 1}
    boot = f"boot{Worker.objects.count()}"
    return Worker.objects.create(**own, boot_id=boot, started_at=clock.now(), heartbeat_at=clock.now())


feed = Shared(FeedFactory)
cluster = Shared(ClusterFactory)
FEEDS = ("feeds.add_feedsource", "feeds.change_feedsource", "feeds.delete_feedsource")
JOBS = ("schedules.change_scheduledjob",)


def build(workspace, status=None):
    return BuildFactory(configuration=ConfigurationFactory(workspace=workspace), status=status)


def artifact(workspace):
    kept = default_storage.save("artifacts/for-a-test", ContentFile(b"{}"))
    return ArtifactFactory(run=run(workspace, status="running"), file=kept, size_bytes=2)


def webhook(workspace):
    return WebhookFactory(workspace=workspace)


def delivery(workspace, status=None):
    return DeliveryFactory(webhook=webhook(workspace), status=status)


ROWS = {
    "POST /documents": Row(files={"file": ("letter.txt", letter)}),
    "POST /api/v1/documents": Row(body={"workspace": workspace_itself}, files={"file": ("letter.txt", letter)}),
    "GET /api/v1/workspaces": Row(),
    "GET /api/v1/workspaces/{id}": Row(ids={"id": workspace_itself}),
    "PATCH /api/v1/workspaces/{id}": Row(ids={"id": workspace_itself}, body={"document_retention_days": 30}),
    "GET /api/v1/workspaces/{id}/retention": Row(ids={"id": workspace_itself}, query={"days": 30}),
    "GET /api/v1/workspaces/{id}/members": Row(ids={"id": workspace_itself}),
    "GET /api/v1/documents": Row(query={"workspace_id": workspace_itself}),
    "GET /api/v1/documents/{id}": Row(ids={"id": document}),
    "GET /api/v1/documents/{id}/text": Row(ids={"id": document}),
    "GET /api/v1/documents/{id}/link": Row(ids={"id": stored}),
    "GET /api/v1/documents/{id}/content": Row(ids={"id": stored}),
    "POST /api/v1/documents/{id}/reprocess": Row(ids={"id": in_status(document, "processed")}),
    "GET /api/v1/fields": Row(query={"document_id": document, "workspace_id": workspace_itself}),
    "GET /api/v1/documents/{id}/fields": Row(ids={"id": document}),
    "PUT /api/v1/documents/{id}/fields/{name}": Row(ids={"id": with_field, "name": "total"}, body={"value": "42"}),
    "DELETE /api/v1/documents/{id}/fields/{name}": Row(ids={"id": with_correction, "name": "total"}),
    "PUT /api/v1/documents/{id}/type": Row(ids={"id": document}, body={"type": "letter"}),
    "GET /api/v1/document-types": Row(query={"workspace_id": workspace_itself}),
    "GET /api/v1/problems": Row(query={"document_id": document, "workspace_id": workspace_itself}),
    "POST /api/v1/problems/{id}/dismiss": Row(ids={"id": problem}),
    "GET /api/v1/documents/{id}/tables": Row(ids={"id": with_table}),
    "GET /api/v1/documents/{id}/tables/{name}": Row(ids={"id": with_table, "name": "table_1"}),
    "GET /api/v1/documents/{id}/tables/{name}/rows": Row(
        ids={"id": with_table, "name": "table_1"}, query={"cursor": "1", "limit": 1}
    ),
    "GET /api/v1/documents/{id}/tables/{name}/export": Row(
        ids={"id": with_table, "name": "table_1"}, query={"format": "xlsx"}
    ),
    "PUT /api/v1/documents/{id}/tables/{name}/rows/{row}/{column}": Row(
        ids={"id": with_table, "name": "table_1", "row": 1, "column": "article"}, body={"text": "Plums"}
    ),
    "DELETE /api/v1/documents/{id}/tables/{name}/rows/{row}/{column}": Row(
        ids={"id": with_corrected_cell, "name": "table_1", "row": 1, "column": "article"}
    ),
    "GET /api/v1/senders": Row(query={"workspace_id": workspace_itself}),
    "GET /api/v1/senders/{id}": Row(ids={"id": sender}),
    "GET /api/v1/senders/{id}/preview": Row(ids={"id": sender}),
    "GET /api/v1/senders/{id}/export": Row(ids={"id": sender}),
    "POST /api/v1/senders/{id}/apply": Row(ids={"id": sender}),
    "POST /api/v1/senders/{id}/off": Row(ids={"id": sender}),
    "POST /api/v1/senders/{id}/on": Row(ids={"id": sender_off}),
    "POST /api/v1/senders/{id}/forget": Row(ids={"id": sender}),
    "POST /api/v1/lessons/{id}/off": Row(ids={"id": lesson}),
    "POST /api/v1/lessons/{id}/on": Row(ids={"id": lesson_off}),
    "POST /api/v1/workspaces/{id}/senders/import": Row(ids={"id": workspace_itself}, body=EXPORTED),
    "GET /api/v1/documents/{id}/chunks": Row(ids={"id": document}),
    "GET /api/v1/documents/{id}/jobs": Row(ids={"id": document}),
    "GET /api/v1/documents/{id}/events": Row(ids={"id": document}),
    "GET /api/v1/documents/{id}/why": Row(ids={"id": document}),
    "GET /api/v1/search": Row(query={"q": "apples", "by": "words", "workspace_id": workspace_itself}),
    "GET /api/v1/configurations": Row(query={"workspace_id": workspace_itself}),
    "POST /api/v1/configurations": Row(201, body={"workspace": workspace_itself}, files={"file": ("p.zip", package)}),
    "GET /api/v1/configurations/{id}": Row(ids={"id": configuration}),
    "GET /api/v1/configurations/{id}/package": Row(ids={"id": configuration}),
    "PUT /api/v1/configurations/{id}/package": Row(ids={"id": configuration}, raw=(package, "application/zip")),
    "POST /api/v1/configurations/{id}/check": Row(ids={"id": configuration}),
    "POST /configurations/{id}/runs": Row(201, {"id": configuration}, {"document_id": document}),
    "GET /api/v1/runs": Row(
        query={
            "workspace_id": workspace_itself,
            "configuration_id": configuration,
            "document_id": document,
            "build_id": build,
        }
    ),
    "GET /api/v1/runs/{id}": Row(ids={"id": run}),
    "GET /api/v1/jobs": Row(),
    "GET /api/v1/jobs/{name}": Row(ids={"name": INGESTION}),
    "GET /api/v1/jobs/{name}/ledger": Row(ids={"name": INGESTION}),
    "GET /api/v1/jobs/{name}/runs": Row(ids={"name": INGESTION}),
    "POST /api/v1/jobs/{name}/runs": Row(201, {"name": INGESTION}, {}, may=JOBS),
    "GET /api/v1/jobs/{name}/runs/{id}": Row(
        ids={"name": INGESTION, "id": Shared(lambda: JobRunFactory(job_name=INGESTION, status="success"))}
    ),
    "GET /api/v1/jobs/{name}/events": Row(ids={"name": INGESTION}),
    "GET /api/v1/jobs/{name}/why": Row(ids={"name": INGESTION}),
    "POST /api/v1/jobs/{name}/backfill": Row(
        ids={"name": INGESTION}, body={"from": SLOT, "to": SLOT, "rehearse": True}, may=JOBS
    ),
    "POST /api/v1/jobs/{name}/pause": Row(ids={"name": INGESTION}, body={}, may=JOBS),
    "POST /api/v1/jobs/{name}/resume": Row(409, ids={"name": INGESTION}, may=JOBS),
    "GET /api/v1/feeds": Row(),
    "POST /api/v1/feeds": Row(201, body={"url": "https://news.example.com/feed.xml"}, may=FEEDS),
    "POST /api/v1/feeds/import": Row(raw=(lambda: OPML, "application/xml"), may=FEEDS),
    "GET /api/v1/feeds/export": Row(),
    "GET /api/v1/feeds/{id}": Row(ids={"id": feed}),
    "PATCH /api/v1/feeds/{id}": Row(ids={"id": feed}, body={"title": "News"}, may=FEEDS),
    "DELETE /api/v1/feeds/{id}": Row(ids={"id": feed}, may=FEEDS),
    "POST /api/v1/feeds/{id}/check": Row(ids={"id": feed}, may=FEEDS),
    "POST /api/v1/feeds/{id}/pause": Row(ids={"id": feed}, body={}, may=FEEDS),
    "POST /api/v1/feeds/{id}/resume": Row(409, ids={"id": feed}, may=FEEDS),
    "GET /api/v1/feeds/{id}/articles": Row(ids={"id": feed}),
    "GET /api/v1/feeds/{id}/events": Row(ids={"id": feed}),
    "GET /api/v1/clusters": Row(),
    "GET /api/v1/clusters/{id}": Row(ids={"id": cluster}),
    "GET /api/v1/clusters/{id}/articles": Row(ids={"id": cluster}),
    "GET /api/v1/briefs": Row(),
    "GET /api/v1/briefs/{name}": Row(ids={"name": Shared(lambda: BriefFactory().name)}),
    "GET /api/v1/workers": Row(),
    "GET /api/v1/workers/{id}": Row(ids={"id": Shared(lambda: worker_row())}),
    "POST /api/v1/workers/{id}/drain": Row(ids={"id": Shared(lambda: worker_row())}, may=("runs.change_queue",)),
    "GET /api/v1/health": Row(anybody=True),
    "GET /api/v1/health/details": Row(),
    "GET /api/v1/me": Row(),
    "GET /api/v1/tokens": Row(query={"workspace_id": workspace_itself}),
    "GET /api/v1/tokens/{id}": Row(ids={"id": token_of_olga}, role="admin", scopes=("admin",), hidden=True),
    "POST /api/v1/tokens": Row(
        201, body={"workspace_id": workspace_itself, "name": "new", "scopes": ["read"]}, role="viewer"
    ),
    "POST /api/v1/tokens/{id}/revoke": Row(ids={"id": token_of_olga}, role="admin", scopes=("admin",), hidden=True),
    "GET /api/v1/audit": Row(query={"workspace_id": workspace_itself, "token_id": token_of_olga}),
    # runs
    "POST /api/v1/configurations/{id}/runs": Row(201, {"id": configuration}, {"document_id": document}),
    "POST /api/v1/runs": Row(201, body={"configuration_id": configuration, "document_ids": [document]}),
    "GET /api/v1/runs/{id}/events": Row(ids={"id": run}),
    "GET /api/v1/runs/{id}/log": Row(ids={"id": run}),
    "GET /api/v1/runs/{id}/why": Row(ids={"id": run}),
    "GET /api/v1/runs/{id}/forecast": Row(ids={"id": run}),
    "GET /api/v1/runs/{id}/artifacts": Row(ids={"id": run}),
    "POST /api/v1/runs/{id}/cancel": Row(ids={"id": run}),
    "POST /api/v1/runs/{id}/again": Row(201, ids={"id": in_status(run, "failed")}),
    "GET /api/v1/artifacts/{id}": Row(ids={"id": artifact}),
    "GET /api/v1/artifacts/{id}/content": Row(ids={"id": artifact}),
    "GET /api/v1/artifacts/{id}/link": Row(ids={"id": artifact}),
    "GET /api/v1/builds": Row(query={"workspace_id": workspace_itself, "configuration_id": configuration}),
    "GET /api/v1/builds/{id}": Row(ids={"id": build}),
    "GET /api/v1/builds/{id}/events": Row(ids={"id": build}),
    "GET /api/v1/builds/{id}/log": Row(ids={"id": build}),
    "GET /api/v1/builds/{id}/why": Row(ids={"id": build}),
    "POST /api/v1/builds/{id}/cancel": Row(ids={"id": build}),
    "POST /api/v1/builds/{id}/again": Row(ids={"id": in_status(build, "failed")}),
    "GET /api/v1/queue": Row(),
    "POST /api/v1/queue/pause": Row(may=("runs.change_queue",)),
    "POST /api/v1/queue/resume": Row(409, may=("runs.change_queue",)),
    # streams
    "GET /api/v1/runs/{id}/stream": Row(ids={"id": run}),
    "GET /api/v1/builds/{id}/stream": Row(ids={"id": build}),
    "GET /api/v1/documents/{id}/stream": Row(ids={"id": document}),
    "GET /api/v1/workspaces/{id}/stream": Row(ids={"id": workspace_itself}),
    # webhooks
    "GET /api/v1/workspaces/{id}/webhooks": Row(ids={"id": workspace_itself}),
    "POST /api/v1/workspaces/{id}/webhooks": Row(
        201, {"id": workspace_itself}, {"name": "hook", "url": "https://example.com/", "topics": ["run.failed"]}
    ),
    "GET /api/v1/webhooks/{id}": Row(ids={"id": webhook}),
    "PATCH /api/v1/webhooks/{id}": Row(ids={"id": webhook}, body={"name": "other"}),
    "DELETE /api/v1/webhooks/{id}": Row(ids={"id": webhook}),
    "POST /api/v1/webhooks/{id}/pause": Row(ids={"id": webhook}),
    "POST /api/v1/webhooks/{id}/resume": Row(409, ids={"id": webhook}),
    "POST /api/v1/webhooks/{id}/rotate": Row(ids={"id": webhook}),
    "POST /api/v1/webhooks/{id}/ping": Row(201, ids={"id": webhook}),
    "GET /api/v1/webhooks/{id}/deliveries": Row(ids={"id": webhook}),
    "GET /api/v1/deliveries/{id}": Row(ids={"id": delivery}),
    "POST /api/v1/deliveries/{id}/resend": Row(201, ids={"id": in_status(delivery, "failed")}),
}

# Pages for people, and their status for a visitor who is not signed in; the admin has its own tests.
PAGES = {
    "documents/search/": 302,
    "documents/<int:id>/download/": 404,
    "artifacts/<int:id>/download/": 404,
    "briefs/": 302,
    "briefs/feed.rss": 403,
    "briefs/<brief:name>/": 302,
    "briefs/<brief:name>.txt": 302,
    "api/v1/openapi.json": 200,
    "api/docs": 200,
}
