"""Live pages: a stream reports that something has changed, and the page then reloads its parts.

The stream contains no data, so all access checks stay with the page.
"""

import time
from collections.abc import Sequence
from threading import Lock
from typing import Any

from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase

from api.callers import Caller
from api.errors import Problem, answer_of
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
# How often a web process checks for silent workers, who write no event; this doesn't depend on the number of streams.
CREW_SECONDS = 5.0
ROWS: dict[str, Any] = {"run": Run.objects, "build": Build.objects, "document": Document.objects}


class Crew:
    """The IDs of alive workers, queried once for all streams of a process."""

    def __init__(self) -> None:
        self._lock, self._asked_at = Lock(), float("-inf")
        self._alive: tuple[int, ...] = ()

    def alive(self) -> tuple[int, ...]:
        with self._lock:
            if time.monotonic() - self._asked_at > CREW_SECONDS:
                self._alive = tuple(Worker.objects.alive().order_by("pk").values_list("pk", flat=True))
                self._asked_at = time.monotonic()
            return self._alive


CREW = Crew()


class Ticks:
    """A stream source that only reports that something has changed."""

    over = ""

    def __init__(self, topic: Topic, user: User | None, *, with_log: bool) -> None:
        """For the topic EVERYTHING, only changes in the workspaces of `user` are reported; None means all
        workspaces.
        """
        self.topic, self.with_log = topic, with_log
        self.is_behind = False
        self._user, self._theirs = user, frozenset[int]()
        self._crew: tuple[int, ...] = ()

    def begin(self, position: Position) -> str:
        if self._user is not None:
            self._theirs = frozenset(Workspace.objects.for_user(self._user).values_list("pk", flat=True))
        self._crew = CREW.alive()
        # Something may have changed between loading the page and opening the stream.
        return _tick()

    def read(self) -> str:
        self.is_behind = False
        before, self._crew = self._crew, CREW.alive()
        return _tick() if self._crew != before else ""

    def take(self, items: Sequence[Item]) -> str:
        return _tick() if any(self._concerns(item) for item in items) else ""

    def mark(self, passed: str) -> str:
        # Called at each heartbeat. Setting `is_behind` makes the stream call `read`, in a thread, which checks the
        # workers.
        self.is_behind = True
        return ""

    def _concerns(self, item: Item) -> bool:
        is_theirs = self._user is None or item.workspace is None or item.workspace in self._theirs
        return is_theirs or self.topic != EVERYTHING


def _tick() -> str:
    return sse.message(CHANGED)


@page
def everything(request: HttpRequest) -> HttpResponseBase:
    user = None if is_superuser(request) else request.user
    return _followed(request, Ticks(EVERYTHING, user, with_log=False), Workspace.objects, None)


@page
def one(request: HttpRequest, kind: str, id: int) -> HttpResponseBase:
    if not ROWS[kind].for_user(request.user).filter(pk=id).exists():
        raise Http404
    return _followed(request, Ticks(Topic(kind, id), None, with_log=True), ROWS[kind], id)


def _followed(request: HttpRequest, source: Ticks, rows: Any, id: int | None) -> HttpResponseBase:
    caller = Caller(person_of(request))
    of_one = {} if id is None else {"pk": id}
    access = Access.of(request, caller, lambda user: rows.for_user(user).filter(**of_one))
    try:
        return Stream(source, access, PLACES.take(caller.key))
    except Problem as problem:
        return answer_of(problem)
