"""What is written of every request that is to change something, and of signing in and out: see `AuditEntry`.

Begun before the change and completed after it. Who dies in between leaves an entry without an answer. Where nobody is
known who asks, there is nothing to write.
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
from documents.models import Workspace
from work.commands import clean
from work.numbers import id_of

LARGEST_ID = 2**63 - 1
# A row of the admin, or some that are chosen in its list.
_ADMIN = re.compile(r"/admin/(?P<app>[a-z_]+)/(?P<model>[a-z_]+)/(?:(?P<id>[0-9]{1,18})/.*)?")
_ATTRIBUTE, _NAME = "_audited", "_audited_as"

log = structlog.get_logger(__name__)


@dataclass
class Record:
    """Of one request: who asks, what has been learnt about it, and its entry once there is one."""

    person: AbstractBaseUser | None
    actor: str
    token: ApiToken | None = None
    operation: str = ""
    workspace_id: int | None = None
    subject_kind: str = ""
    subject_id: int | None = None
    entry: AuditEntry | None = None
    # Refused so often that one entry tells of many.
    is_passed_over: bool = False

    def saw(self, kind: str, id: int, workspace_id: int | None) -> None:
        """The first row that is asked for is what the request is about."""
        if not self.subject_kind:
            self.subject_kind, self.subject_id = kind, id
        self.workspace_id = self.workspace_id or workspace_id

    @property
    def learnt(self) -> dict[str, Any]:
        about = {"subject_kind": self.subject_kind[:40], "subject_id": self.subject_id}
        return about | {"workspace_id": self.workspace_id, "operation": self.operation[:200]}


def name(request: HttpRequest, operation: str) -> None:
    """What is asked, said before it is known who asks."""
    setattr(request, _NAME, operation)


def know(request: HttpRequest, person: AbstractBaseUser, actor: str, token: ApiToken | None = None) -> Record:
    """Called as soon as it is known who asks, even if they are refused then."""
    operation, workspace_id = getattr(request, _NAME, ""), token.workspace_id if token else None
    return _keep(request, Record(person, actor, token, operation, workspace_id))


def record_of(request: HttpRequest) -> Record | None:
    return getattr(request, _ATTRIBUTE, None)


def tell(request: HttpRequest, operation: str, person: AbstractBaseUser | None) -> None:
    """Of a request that turns out to be this, also where it is not known who asks."""
    record = record_of(request)
    if record is None:
        record = _keep(request, Record(person, person.get_username() if person else ""))
    record.operation = operation
    if record.entry is None:
        record.entry = _write(request, record)


def begin(request: HttpRequest) -> None:
    """Before the change: if this cannot be written, nothing is changed."""
    record = record_of(request)
    if record and request.method not in SAFE:
        record.entry = _write(request, record)


def _keep(request: HttpRequest, record: Record) -> Record:
    setattr(request, _ATTRIBUTE, record)
    return record


def changes(get_response: Callable[[HttpRequest], HttpResponseBase]) -> Callable[[HttpRequest], HttpResponseBase]:
    """Behind the middleware that knows who is signed in. What only reads passes through, and asks no database."""

    def answer(request: HttpRequest) -> HttpResponseBase:
        if request.method in SAFE:
            return get_response(request)
        _begin_on_a_page(request)
        response = get_response(request)
        _complete(request, response.status_code)
        return response

    return answer


def _begin_on_a_page(request: HttpRequest) -> None:
    """Programs are known later, by their tokens."""
    person = request.user
    if not is_for_programs(request.path) and isinstance(person, AbstractBaseUser):
        record = know(request, person, person.get_username())
        _look_at_the_admin(request, record)
        begin(request)


def _look_at_the_admin(request: HttpRequest, record: Record) -> None:
    found = _ADMIN.fullmatch(request.path_info)
    if not found or found["model"] not in apps.all_models.get(found["app"], {}):
        return
    chosen = request.POST.getlist("_selected_action") if found["id"] is None else [found["id"]]
    ids = {id for text in chosen if (id := id_of(text)) is not None}
    record.subject_kind = found["model"]
    # Of all that match a filter, the form has those of its page only.
    is_of_all = found["id"] is None and request.POST.get("select_across", "0") != "0"
    record.subject_id = min(ids) if len(ids) == 1 and not is_of_all else None
    model = apps.get_model(found["app"], found["model"])
    there = set(_workspaces_of(model, ids)) if ids else set()
    record.workspace_id = there.pop() if len(there) == 1 else None


def _workspaces_of(model: Any, ids: set[int]) -> Any:
    path = "pk" if model is Workspace else getattr(admin.site._registry.get(model), "workspace_path", "")
    rows = model._base_manager.filter(pk__in=ids).order_by()
    return rows.values_list(path, flat=True).distinct()[:2] if path else ()


def _complete(request: HttpRequest, answered: int) -> None:
    record = record_of(request)
    if record is None or record.is_passed_over:
        return
    try:
        if record.entry is None:
            record.entry = _write(request, record, answered)
        else:
            # The only change of an entry that there is.
            entry, learnt = AuditEntry.objects.filter(pk=record.entry.pk, answered=None), _learnt_since(record)
            with _no_wait_for_the_disk():
                entry.update(answered=answered, **learnt)
    except Error as error:
        # What was to be done is done, or refused: the answer is to tell that.
        log.error("audit.not_completed", entry=record.entry and record.entry.pk, answered=answered, error=str(error))


@contextmanager
def _no_wait_for_the_disk() -> Iterator[None]:
    """An entry survives this process at once. It reaches the disk of the database together with the change at the
    latest, which comes after it and is waited for.
    """
    is_alone = connection.vendor == "postgresql" and not connection.in_atomic_block
    with transaction.atomic():
        if is_alone:
            with connection.cursor() as cursor:
                cursor.execute("SET LOCAL synchronous_commit = off")
        yield


def _learnt_since(record: Record) -> dict[str, Any]:
    learnt = {name: value for name, value in record.learnt.items() if value != getattr(record.entry, name)}
    # It may have been deleted just now.
    if "workspace_id" in learnt and not Workspace.objects.filter(pk=learnt["workspace_id"]).exists():
        del learnt["workspace_id"]
    return learnt


def _write(request: HttpRequest, record: Record, answered: int | None = None) -> AuditEntry:
    record.operation = record.operation or _route(request)
    columns = dict(
        actor=clean(record.actor)[:200],
        person_id=record.person.pk if record.person else None,
        token=record.token,
        address=address_of(request),
        request_id=str(structlog.contextvars.get_contextvars().get("request_id", ""))[:64],
        method=clean(request.method or "")[:16],
        path=clean(request.path)[:500],
        answered=answered,
        **record.learnt,
    )
    with _no_wait_for_the_disk():
        return AuditEntry.objects.create(**columns)


def _route(request: HttpRequest) -> str:
    try:
        found = request.resolver_match or resolve(request.path_info)
    except Resolver404:
        return ""
    # Buttons of the admin have no names, and methods of one path of the API share one.
    has_name = found.url_name and not is_for_programs(request.path)
    return found.view_name if has_name else found.route
