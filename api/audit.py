"""Writes the audit log: one entry for every request that may change something, and for every sign-in and sign-out. See
`AuditEntry`.

An entry is written before the change and completed after it, so a process that dies in between leaves an entry without
a status. Requests without an authenticated user are not audited, except failed sign-ins.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import structlog
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import AbstractBaseUser
from django.db import Error, connection, transaction
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import Resolver404, resolve

from api.addresses import address_of
from api.errors import is_for_programs
from api.limits import SAFE
from api.models import ApiToken, AuditEntry
from work.operations.commands import clean
from work.operations.ids import id_of
from workspaces.models import Workspace

# The admin page of one row or, without an ID, a list with its selected rows.
_ADMIN = re.compile(r"/admin/(?P<app>[a-z_]+)/(?P<model>[a-z_]+)/(?:(?P<id>[0-9]{1,18})/.*)?")
_ATTRIBUTE, _NAME = "_audited", "_audited_as"

log = structlog.get_logger(__name__)


@dataclass
class Record:
    """Collects what is known about a request so far: its user, its subject and, once written, its audit entry."""

    person: AbstractBaseUser | None
    actor: str
    token: ApiToken | None = None
    operation: str = ""
    workspace_id: int | None = None
    subject_kind: str = ""
    subject_id: int | None = None
    entry: AuditEntry | None = None
    # True if the request was rate limited and an earlier entry already records that, so this request gets no entry.
    is_passed_over: bool = False

    def saw(self, kind: str, id: int, workspace_id: int | None) -> None:
        """Record a row that the request has loaded. The first one is the subject of the request."""
        if not self.subject_kind:
            self.subject_kind, self.subject_id = kind, id
        self.workspace_id = self.workspace_id or workspace_id

    @property
    def columns(self) -> dict[str, Any]:
        """Return the columns of the entry that may still change until the response is sent."""
        return {
            "subject_kind": self.subject_kind[:40],
            "subject_id": self.subject_id,
            "workspace_id": self.workspace_id,
            "operation": self.operation[:200],
        }


def set_operation(request: HttpRequest, operation: str) -> None:
    """Store the name of the operation on the request, before the caller is authenticated and a record exists."""
    setattr(request, _NAME, operation)


def start_record(request: HttpRequest, person: AbstractBaseUser, actor: str, token: ApiToken | None = None) -> Record:
    """Start the record. Call this as soon as the caller is authenticated, so that refused requests are audited too."""
    workspace_id = token.workspace_id if token else None
    record = Record(person, actor, token, getattr(request, _NAME, ""), workspace_id)
    setattr(request, _ATTRIBUTE, record)
    return record


def record_of(request: HttpRequest) -> Record | None:
    return getattr(request, _ATTRIBUTE, None)


def record_sign_in(request: HttpRequest, operation: str, person: AbstractBaseUser | None) -> None:
    """Write the audit entry of a sign-in or sign-out, even if the user is unknown."""
    record = record_of(request)
    if record is None:
        record = Record(person, person.get_username() if person else "")
        setattr(request, _ATTRIBUTE, record)
    record.operation = operation
    if record.entry is None:
        record.entry = _write(request, record)


def begin(request: HttpRequest) -> None:
    """Write the audit entry before the change. If the entry can't be written, the error prevents the change."""
    record = record_of(request)
    if record and request.method not in SAFE:
        record.entry = _write(request, record)


def audit_changes(get_response: Callable[[HttpRequest], HttpResponseBase]) -> Callable[[HttpRequest], HttpResponseBase]:
    """Middleware that audits unsafe requests; it must come after authentication. Safe requests cause no query."""

    def answer(request: HttpRequest) -> HttpResponseBase:
        if request.method in SAFE:
            return get_response(request)
        person = request.user
        # API requests are authenticated later, by their tokens.
        if not is_for_programs(request.path) and isinstance(person, AbstractBaseUser):
            _find_subject(request, start_record(request, person, person.get_username()))
            begin(request)
        response = get_response(request)
        _complete(request, response.status_code)
        return response

    return answer


def _find_subject(request: HttpRequest, record: Record) -> None:
    """Record which row of the admin the request is about."""
    match = _ADMIN.fullmatch(request.path_info)
    if not match or match["model"] not in apps.all_models.get(match["app"], {}):
        return
    texts = request.POST.getlist("_selected_action") if match["id"] is None else [match["id"]]
    ids = {id for text in texts if (id := id_of(text)) is not None}
    record.subject_kind = match["model"]
    # With "select all that match", the form contains only the IDs of the current page.
    is_of_all = match["id"] is None and request.POST.get("select_across", "0") != "0"
    record.subject_id = min(ids) if len(ids) == 1 and not is_of_all else None
    model: Any = apps.get_model(match["app"], match["model"])
    path = "pk" if model is Workspace else getattr(admin.site._registry.get(model), "workspace_path", "")
    workspaces = set()
    if ids and path:
        workspaces = set(model._base_manager.filter(pk__in=ids).order_by().values_list(path, flat=True).distinct()[:2])
    record.workspace_id = workspaces.pop() if len(workspaces) == 1 else None


def _complete(request: HttpRequest, answered: int) -> None:
    record = record_of(request)
    if record is None or record.is_passed_over:
        return
    try:
        if record.entry is None:
            record.entry = _write(request, record, answered)
        else:
            # An entry is updated only here, and only once.
            entry, changes = AuditEntry.objects.filter(pk=record.entry.pk, answered=None), _changed_columns(record)
            with _no_wait_for_the_disk():
                entry.update(answered=answered, **changes)
    except Error as error:
        # Don't raise: the change was already made or refused, and the response must report that outcome.
        log.error("audit.not_completed", entry=record.entry and record.entry.pk, answered=answered, error=str(error))


@contextmanager
def _no_wait_for_the_disk() -> Iterator[None]:
    """Commit without waiting for the database's disk. From the commit on, the entry survives a crash of this process.
    It reaches the disk at the latest with the next change, whose commit does wait.
    """
    is_alone = connection.vendor == "postgresql" and not connection.in_atomic_block
    with transaction.atomic():
        if is_alone:
            with connection.cursor() as cursor:
                cursor.execute("SET LOCAL synchronous_commit = off")
        yield


def _changed_columns(record: Record) -> dict[str, Any]:
    changes = {name: value for name, value in record.columns.items() if value != getattr(record.entry, name)}
    # The request may just have deleted the workspace.
    if "workspace_id" in changes and not Workspace.objects.filter(pk=changes["workspace_id"]).exists():
        del changes["workspace_id"]
    return changes


def _write(request: HttpRequest, record: Record, answered: int | None = None) -> AuditEntry:
    if not record.operation:
        try:
            route = request.resolver_match or resolve(request.path_info)
            # Use the route where the URL name doesn't identify the operation: the admin's action URLs have no names,
            # and all methods of an API path share one name.
            has_name = route.url_name and not is_for_programs(request.path)
            record.operation = route.view_name if has_name else route.route
        except Resolver404:
            record.operation = ""
    columns = record.columns | {
        "actor": clean(record.actor)[:200],
        "person_id": record.person.pk if record.person else None,
        "token": record.token,
        "address": address_of(request),
        "request_id": str(structlog.contextvars.get_contextvars().get("request_id", ""))[:64],
        "method": clean(request.method or "")[:16],
        "path": clean(request.path)[:500],
        "answered": answered,
    }
    with _no_wait_for_the_disk():
        return AuditEntry.objects.create(**columns)
