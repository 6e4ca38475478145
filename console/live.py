"""Live pages: a stream reports only that something has changed, and the page then reloads its changing parts.

Because the stream contains no data, the page makes all access checks.
"""

import time
from collections.abc import Sequence
from threading import Lock
from typing import Any

from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase

from api.callers import Caller
from api.errors import Problem, response_of
from api.streams import sse
from api.streams.access import Access
from api.streams.following import Stream
from api.streams.hub import EVERYTHING, Topic
from api.streams.places import PLACES
from api.streams.sse import Item
from builds.models import Build
from console.frame import is_superuser, page, person_of
from documents.models import Document
from runs.models import Run
from work.models import Worker
from work.tail import Position
from workspaces.models import User, Workspace

CHANGED = "news"
# How often a web process looks for silent workers, which write no events. All its streams share the query.
WORKERS_SECONDS = 5.0
ROWS: dict[str, Any] = {"run": Run.objects, "build": Build.objects, "document": Document.objects}


class AliveWorkers:
    """The IDs of alive workers, queried once for all streams of a web process."""

    def __init__(self) -> None:
        self._lock, self._read_at = Lock(), float("-inf")
        self._ids: tuple[int, ...] = ()

    def ids(self) -> tuple[int, ...]:
        with self._lock:
            if time.monotonic() - self._read_at > WORKERS_SECONDS:
                self._ids = tuple(Worker.objects.alive().order_by("pk").values_list("pk", flat=True))
                self._read_at = time.monotonic()
            return self._ids


WORKERS = AliveWorkers()


class Ticks:
    """A stream source that reports only that something has changed."""

    over = ""

    def __init__(self, topic: Topic, user: User | None, *, with_log: bool) -> None:
        """With the topic EVERYTHING, report only changes in the workspaces of `user`; None means in all workspaces."""
        self.topic, self.with_log = topic, with_log
        self.is_behind = False
        self._user, self._workspace_ids = user, frozenset[int]()
        self._workers: tuple[int, ...] = ()

    def begin(self, position: Position) -> str:
        if self._user is not None:
            self._workspace_ids = frozenset(Workspace.objects.for_user(self._user).values_list("pk", flat=True))
        self._workers = WORKERS.ids()
        # Something may have changed between loading the page and opening the stream.
        return _tick()

    def read(self) -> str:
        self.is_behind = False
        before, self._workers = self._workers, WORKERS.ids()
        return _tick() if self._workers != before else ""

    def take(self, items: Sequence[Item]) -> str:
        visible = {None, *self._workspace_ids}
        is_for_all = self._user is None or self.topic != EVERYTHING
        return _tick() if any(is_for_all or item.workspace in visible for item in items) else ""

    def mark(self, passed: str) -> str:
        # The stream calls this at each heartbeat. `is_behind` makes it call `read` next, in a thread, which checks the
        # workers.
        self.is_behind = True
        return ""


def _tick() -> str:
    return sse.message(CHANGED)


@page
def everything(request: HttpRequest) -> HttpResponseBase:
    user = None if is_superuser(request) else request.user
    return _stream(request, Ticks(EVERYTHING, user, with_log=False), Workspace.objects)


@page
def one(request: HttpRequest, kind: str, id: int) -> HttpResponseBase:
    if not ROWS[kind].for_user(request.user).filter(pk=id).exists():
        raise Http404
    return _stream(request, Ticks(Topic(kind, id), None, with_log=True), ROWS[kind], pk=id)


def _stream(request: HttpRequest, source: Ticks, rows: Any, **filters: int) -> HttpResponseBase:
    caller = Caller(person_of(request))
    access = Access.of(request, caller, lambda user: rows.for_user(user).filter(**filters))
    try:
        return Stream(source, access, PLACES.take(caller.key))
    except Problem as problem:
        return response_of(problem)
