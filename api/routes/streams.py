from typing import Annotated, Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import Query, Router

from api.callers import caller_of
from api.frame import responses
from api.streams import sources
from api.streams.access import Access
from api.streams.following import Stream
from api.streams.places import PLACES
from builds.lifecycle import BUILD_STATES
from builds.models import Build
from documents.lifecycle import DOCUMENT_STATES
from documents.models import Document
from runs.lifecycle import RUN_STATES
from runs.models import Run
from workspaces.models import Workspace

routes = Router(tags=["streams"])

Last = Annotated[
    str,
    Query(
        max_length=2100,
        description="ID of the last event received, for clients that cannot set the header Last-Event-ID",
    ),
]
Logs = Annotated[bool, Query(description="also send the output of engines and builds")]
EXAMPLE = """retry: 2000

id: 1
data: {"id":1042,"subject_kind":"run","subject_id":7,"sequence":1,"kind":"RUN_QUEUED","to_status":"queued"}

event: end
data: {"reason":"finished"}

"""
STREAM: dict[str, Any] = {
    "parameters": [
        {
            "in": "header",
            "name": "Last-Event-ID",
            "required": False,
            "schema": {"type": "string", "maxLength": 2100},
            "description": "the last `id` received; later events follow",
        }
    ],
    "responses": {
        200: {
            "description": "Server-sent events; see docs/streams.md.",
            "content": {"text/event-stream": {"schema": {"type": "string"}, "example": EXAMPLE}},
        }
    },
}


@routes.get("/runs/{id:id}/stream", response=responses({200: None}), openapi_extra=STREAM, summary="Follow run")
def follow_run(request: HttpRequest, id: int, last_event_id: Last = "") -> HttpResponseBase:
    """Follow the events and the output of a run until it ends."""
    caller_of(request).find(Run, id)
    source = sources.OfSubject(RUN_STATES, id, Run.TERMINAL, _last_id(request, last_event_id))
    return _follow(request, source, Run.objects, id)


@routes.get("/builds/{id:id}/stream", response=responses({200: None}), openapi_extra=STREAM, summary="Follow build")
def follow_build(request: HttpRequest, id: int, last_event_id: Last = "") -> HttpResponseBase:
    """Follow the events and the output of a build until it ends."""
    caller_of(request).find(Build, id)
    source = sources.OfSubject(BUILD_STATES, id, Build.TERMINAL, _last_id(request, last_event_id))
    return _follow(request, source, Build.objects, id)


@routes.get(
    "/documents/{id:id}/stream", response=responses({200: None}), openapi_extra=STREAM, summary="Follow document"
)
def follow_document(request: HttpRequest, id: int, last_event_id: Last = "") -> HttpResponseBase:
    """Follow the events of a document. The stream has no end: a document may be processed again."""
    caller_of(request).find(Document, id)
    source = sources.OfSubject(DOCUMENT_STATES, id, frozenset(), _last_id(request, last_event_id))
    return _follow(request, source, Document.objects, id)


@routes.get(
    "/workspaces/{id:id}/stream", response=responses({200: None}), openapi_extra=STREAM, summary="Follow workspace"
)
def follow_workspace(request: HttpRequest, id: int, last_event_id: Last = "", logs: Logs = False) -> HttpResponseBase:
    """Follow the events of a workspace: of its runs, builds, documents, processing jobs and stages."""
    caller_of(request).find(Workspace, id)
    source = sources.OfWorkspace(id, _last_id(request, last_event_id), with_log=logs)
    return _follow(request, source, Workspace.objects, id)


def _last_id(request: HttpRequest, parameter: str) -> str:
    # The header takes precedence: a browser that reconnects sends it, but repeats the URL with the old parameter.
    return request.headers.get("Last-Event-ID", "") or parameter


def _follow(request: HttpRequest, source: sources.Source, rows: Any, id: int) -> HttpResponseBase:
    caller = caller_of(request)
    access = Access.of(request, caller, lambda user: rows.for_user(user).filter(pk=id))
    return Stream(source, access, PLACES.take(caller.key))
