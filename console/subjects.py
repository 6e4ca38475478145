"""Rows that events and workers name by kind and id: which of them somebody may know, and which page tells of each."""

from collections.abc import Collection, Iterable, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

from api.sight import visible
from api.subjects import Subject
from console.frame import is_superuser
from console.words import plain
from documents.models import DocumentProcessingJob, Stage
from runs.models import DueSlot, JobRun

# What belongs to no workspace: all who are in one may know of it.
SHARED = frozenset(
    {"job_run", "due_slot", "worker", "queue", "scheduled_job", "feed", "article", "cluster", "brief"},
)
_PAGES = {
    "run": "console:run",
    "build": "console:build",
    "document": "console:document",
    "worker": "console:worker",
    "feed": "console:feed",
    "cluster": "console:cluster",
}
# What has no page of its own, is told of on that of something else: by which column, and on which page.
_ON_OTHERS: dict[str, tuple[Any, str, str]] = {
    "job": (DocumentProcessingJob, "document_id", "console:document"),
    "stage": (Stage, "job__document_id", "console:document"),
    "job_run": (JobRun, "job_name", "console:job"),
    "due_slot": (DueSlot, "job_name", "console:job"),
}


@dataclass(frozen=True)
class Named:
    kind: str
    # None: of a workspace of others.
    id: int | None
    # Empty: no page tells of it.
    url: str = ""

    def __str__(self) -> str:
        return f"{plain(self.kind)} {self.id}" if self.id is not None else f"{plain(self.kind)} of another workspace"


def named(request: HttpRequest, subjects: Iterable[Subject]) -> Mapping[Subject, Named]:
    """One statement for each kind, and one more for a kind that is told of on the page of another."""
    wanted = set(subjects)
    known = known_to(request, wanted)
    pages = _pages(known)
    return {
        (kind, id): Named(kind, id, pages.get((kind, id), "")) if (kind, id) in known else Named(kind, None)
        for kind, id in wanted
    }


def known_to(request: HttpRequest, subjects: Set[Subject]) -> Set[Subject]:
    """Of these rows, those that whoever asks may know. Whoever asks is a member of something."""
    return subjects if is_superuser(request) else visible(request.user, subjects, SHARED)


def _pages(subjects: Collection[Subject]) -> dict[Subject, str]:
    found = {(kind, id): reverse(_PAGES[kind], args=[id]) for kind, id in subjects if kind in _PAGES and id > 0}
    for kind, (model, column, page) in _ON_OTHERS.items():
        if ids := [id for each, id in subjects if each == kind]:
            rows = model._base_manager.filter(pk__in=ids).values_list("pk", column)
            found |= {(kind, pk): _address(page, value) for pk, value in rows}
    return found


def _address(page: str, value: Any) -> str:
    """Empty for the name of a job that no address has: it is not of ours."""
    with suppress(NoReverseMatch):
        return reverse(page, args=[value])
    return ""
