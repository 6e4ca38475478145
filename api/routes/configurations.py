import hashlib
import io
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import content_disposition_header
from ninja import File, Form, Query, Router, Schema, UploadedFile
from pydantic import ConfigDict, Field

from api import files, uploads
from api.callers import OPERATE, caller_of
from api.errors import Problem
from api.frame import Out, responses
from api.idempotency import HEADER, create_once
from api.ids import Id
from api.pages import Listing, Page, page
from api.routes.documents import choose_workspace
from builds import archives, configurations, contents, packages
from builds.configurations import NameTaken
from builds.models import Configuration
from builds.packages import BadPackage, Package
from runs import checking
from work.processes.supervise import CannotStart
from workspaces.models import Workspace

routes = Router(tags=["configurations"])

ZIP = "application/zip"
BYTES: dict[str, Any] = {"schema": {"type": "string", "contentMediaType": ZIP}}
IN: dict[str, Any] = {"requestBody": {"required": True, "content": {ZIP: BYTES}}}
SAME: dict[int, Any] = {304: {"description": "Not changed since the version that the caller has."}}
OUT: dict[str, Any] = {"responses": {200: {"description": "A zip file.", "content": {ZIP: BYTES}}} | SAME}


class ConfigurationOut(Out):
    id: int
    workspace_id: int
    name: str
    entry_point: str
    python_version: Annotated[str, Field(description="empty: the version that ADE itself uses")]
    publish: Annotated[bool, Field(description="whether runs publish their findings as fields of their document")]
    contents_sha256: str
    created_at: datetime
    updated_at: datetime


class PackageFileOut(Out):
    path: str
    size_bytes: int


class ConfigurationDetail(ConfigurationOut):
    requirements: str
    files: list[PackageFileOut]


class ConfigurationStoredOut(ConfigurationDetail):
    result: Annotated[str, Field(description="updated or unchanged")]


class ProblemOfPackage(Schema):
    stage: Annotated[str, Field(description="package or syntax")]
    message: str
    path: str | None
    line: int | None


class ConfigurationCheckOut(Out):
    ok: bool
    problems: list[ProblemOfPackage]
    fingerprint: str
    environment: Annotated[str | None, Field(description="ready if this version is already built; otherwise null")]


class Configurations(Listing):
    workspace_id: Id | None = None
    name: Annotated[str | None, Field(max_length=contents.LONGEST_NAME)] = None


class Creation(Schema):
    model_config = ConfigDict(extra="forbid")

    workspace: Annotated[Id | None, Field(description="required if you are an operator of several workspaces")] = None
    name: Annotated[
        str | None,
        Field(min_length=1, max_length=contents.LONGEST_NAME, description="name (default: the name in the package)"),
    ] = None


@routes.get("/configurations", response=responses({200: Page[ConfigurationOut]}))
def list_configurations(request: HttpRequest, listing: Query[Configurations]) -> dict[str, Any]:
    caller = caller_of(request)
    if listing.workspace_id is not None:
        caller.find(Workspace, listing.workspace_id)
    rows = Configuration.objects.for_user(caller.user).filter(**listing.filters()).defer("files", "requirements")
    return page(rows, listing, ConfigurationOut.of)


@routes.post("/configurations", response=responses({201: ConfigurationDetail}, 409, 422), auth=OPERATE)
def create_configuration(request: HttpRequest, form: Form[Creation], file: File[UploadedFile]) -> HttpResponseBase:
    """Create a configuration from a package, which is a zip file."""
    uploads.check(request, *Creation.model_fields)
    workspace = choose_workspace(caller_of(request), form.workspace)
    package = _package_in(file.read(archives.MOST_BYTES + 1))

    def make() -> dict[str, Any]:
        try:
            return _detail(configurations.create(workspace, package, name=form.name))
        except BadPackage as bad:
            raise _bad(bad) from bad
        except NameTaken as taken:
            raise Problem("conflict", str(taken), {"configuration_id": taken.configuration.pk}) from taken

    sha256 = uploads.sha256_of(file, workspace.pk, form.name) if HEADER in request.headers else None
    return create_once(request, 201, make, sha256)


@routes.get(
    "/configurations/{id:id}",
    response=responses({200: ConfigurationDetail}, 412),
    openapi_extra={"responses": SAME},
)
def show_configuration(request: HttpRequest, id: int) -> HttpResponseBase:
    """Show a configuration with the names of its files. The package has their contents."""
    return files.send_json(request, _detail(caller_of(request).find(Configuration, id)))


@routes.get("/configurations/{id:id}/package", response=responses({200: None}, 409, 412), openapi_extra=OUT)
def download_package(request: HttpRequest, id: int) -> HttpResponseBase:
    """Download a configuration as a zip file. The same contents give the same bytes."""
    configuration = caller_of(request).find(Configuration, id)
    if unchanged := files.check_tag(request, _tag(configuration)):
        return unchanged
    file = io.BytesIO()
    try:
        packages.write_zip(configurations.package_of(configuration), file)
    except BadPackage as bad:
        raise Problem("conflict", f"The contents are not a valid package. {bad}", {"problems": bad.problems}) from bad
    disposition = content_disposition_header(as_attachment=True, filename=f"{configuration.name}.zip") or "attachment"
    headers = {
        "ETag": _tag(configuration),
        "Content-Disposition": disposition,
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "sandbox; default-src 'none'",
    }
    return HttpResponse(file.getvalue(), ZIP, headers=headers)


@routes.put(
    "/configurations/{id:id}/package",
    response=responses({200: ConfigurationStoredOut}, 412),
    auth=OPERATE,
    openapi_extra=IN,
)
def replace_package(request: HttpRequest, id: int) -> dict[str, Any]:
    """Replace the contents of a configuration with a package, which is a zip file. The name in it is ignored.

    With If-Match and the tag of a downloaded package, the contents are replaced only if they have not changed since.
    """
    caller = caller_of(request)
    configuration = caller.find(Configuration, id)
    caller.require_operator(configuration.workspace)
    if request.content_type != ZIP:
        message = f"Unsupported content type {request.content_type or '(none)'}. Use {ZIP}."
        raise Problem("unsupported_media_type", message)
    package = _package_in(request.read(archives.MOST_BYTES + 1))
    with transaction.atomic():
        configuration = Configuration.objects.select_for_update().get(pk=id)
        # Check the tag while holding the lock. Raises Problem if another request has changed the configuration
        # meanwhile.
        files.check_tag(request, _tag(configuration))
        result = configurations.replace(configuration, package)
    return _detail(configuration) | {"result": result}


@routes.post("/configurations/{id:id}/check", response=responses({200: ConfigurationCheckOut}), auth=OPERATE)
def check(request: HttpRequest, id: int) -> dict[str, Any]:
    """Check a configuration without running its code or building an environment."""
    caller = caller_of(request)
    configuration = caller.find(Configuration, id)
    caller.require_operator(configuration.workspace)
    try:
        report = checking.glance(configuration.snapshot())
    except CannotStart as error:
        raise Problem("unavailable", str(error), headers={"Retry-After": "30"}) from error
    texts = packages.problems_of(configurations.package_of(configuration))
    of_package = [checking.Problem("package", text) for text in texts]
    problems = [asdict(problem) for problem in [*of_package, *report.problems]]
    return ConfigurationCheckOut.of(report, ok=not problems, problems=problems)


def _detail(configuration: Configuration) -> dict[str, Any]:
    sizes = {path: len(text.encode(errors="replace")) for path, text in sorted(configuration.files.items())}
    return ConfigurationOut.of(configuration) | {
        "requirements": configuration.requirements,
        "files": [{"path": path, "size_bytes": size} for path, size in sizes.items()],
    }


def _tag(configuration: Configuration) -> str:
    text = f"{configuration.name} {configuration.contents_sha256}{' publish' if configuration.publish else ''}"
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


def _package_in(data: bytes) -> Package:
    if len(data) > archives.MOST_BYTES:
        raise Problem("too_large", f"The zip file is larger than {archives.MOST_BYTES:,} bytes.")
    try:
        return packages.read_zip(io.BytesIO(data))
    except BadPackage as bad:
        raise _bad(bad) from bad


def _bad(bad: BadPackage) -> Problem:
    return Problem(
        "bad_package", f"The file is not a valid package. {bad}", {"problems": bad.problems[: contents.MOST_TOLD]}
    )
