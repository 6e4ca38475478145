from datetime import datetime, timedelta
from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import Query, Router

from api import files
from api.callers import caller_of
from api.frame import Out, responses
from api.pages import Listing, Page, page
from documents import downloads
from runs import views
from runs.models import Artifact, Run
from work import clock

routes = Router(tags=["artifacts"])

BYTES: dict[str, Any] = {
    "responses": {
        status: {"description": text, "content": {"application/octet-stream": {"schema": {}}}}
        for status, text in ((200, "The whole file."), (206, "The requested part."))
    }
}


class ArtifactOut(Out):
    id: int
    run_id: int
    name: str
    size_bytes: int
    sha256: str
    content_type: str
    created_at: datetime


class ArtifactLinkOut(Out):
    url: str
    expires_at: datetime


@routes.get("/runs/{id:id}/artifacts", response=responses({200: Page[ArtifactOut]}))
def list_artifacts(request: HttpRequest, id: int, listing: Query[Listing]) -> dict[str, Any]:
    """List the files that a run produced."""
    run = caller_of(request).find(Run, id)
    return page(run.artifacts.all(), listing, ArtifactOut.of)


@routes.get("/artifacts/{id:id}", response=responses({200: ArtifactOut}, 412))
def show_artifact(request: HttpRequest, id: int) -> HttpResponseBase:
    return files.send_json(request, ArtifactOut.of(caller_of(request).find(Artifact, id)))


@routes.get("/artifacts/{id:id}/content", response=responses({200: None}, 412, 416), openapi_extra=BYTES)
def download_artifact(request: HttpRequest, id: int) -> HttpResponseBase:
    """Download the file or a part of it (Range); 302 to the storage if the storage sends files itself."""
    artifact = caller_of(request).find(Artifact, id)
    stored = files.StoredFile(
        artifact.file, artifact.name, artifact.content_type, size_bytes=artifact.size_bytes, sha256=artifact.sha256
    )
    return files.send(request, stored)


@routes.get("/artifacts/{id:id}/link", response=responses({200: ArtifactLinkOut}), summary="Create artifact link")
def link_artifact(request: HttpRequest, id: int) -> dict[str, Any]:
    """Create a link for downloading the file without a token. It is valid for some minutes."""
    link = views.link(caller_of(request).find(Artifact, id), caller_of(request).person)
    return {
        "url": request.build_absolute_uri(link),
        "expires_at": clock.now() + timedelta(seconds=downloads.LINK_SECONDS),
    }
