"""Rows that events and workers refer to by kind and ID: which of them a user may know, and which page shows each."""

from collections.abc import Callable, Collection, Iterable, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

from api.subjects import Subject
from api.visibility import visible
from console.formatting import plain
from console.frame import is_superuser
from documents.models import DocumentProcessingJob, Stage
from schedules.models import DueSlot, JobRun

# Kinds that belong to no workspace; every member may know them.
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


@dataclass(frozen=True)
class Named:
    kind: str
    # None: the row belongs to a workspace that the user can't see.
    id: int | None
    # Empty if no page shows the row.
    url: str = ""

    def __str__(self) -> str:
        return f"{plain(self.kind)} {self.id}" if self.id is not None else f"{plain(self.kind)} of another workspace"


def named(request: HttpRequest, subjects: Iterable[Subject]) -> Mapping[Subject, Named]:
    """Return the names of rows. Costs one query per kind, and one more for each kind that is shown on the page of
    another.
    """
    wanted = set(subjects)
    known = known_to(request, wanted)
    urls = _urls(known)
    return {
        (kind, id): Named(kind, id, urls.get((kind, id), "")) if (kind, id) in known else Named(kind, None)
        for kind, id in wanted
    }


def known_to(request: HttpRequest, subjects: Set[Subject]) -> Set[Subject]:
    """Return the rows that the user may know. The caller must have checked that the user is a member of a workspace."""
    return subjects if is_superuser(request) else visible(request.user, subjects, SHARED)


def url_of_job(name: str) -> str:
    """Return the URL of a job, or "" if the name can't be in a URL because it is none of ours."""
    with suppress(NoReverseMatch):
        return reverse("console:job", args=[name])
    return ""


def _urls(subjects: Collection[Subject]) -> dict[Subject, str]:
    urls = {(kind, id): reverse(_PAGES[kind], args=[id]) for kind, id in subjects if kind in _PAGES and id > 0}
    for kind, (model, column, url_of) in _ON_OTHERS.items():
        if ids := [id for each, id in subjects if each == kind]:
            rows = model._base_manager.filter(pk__in=ids).values_list("pk", column)
            urls |= {(kind, pk): url_of(value) for pk, value in rows}
    return urls


def _url_of_document(id: int) -> str:
    return reverse("console:document", args=[id])


# Kinds without a page of their own: the column that leads to another row, and the page of that row.
_ON_OTHERS: dict[str, tuple[Any, str, Callable[[Any], str]]] = {
    "job": (DocumentProcessingJob, "document_id", _url_of_document),
    "stage": (Stage, "job__document_id", _url_of_document),
    "job_run": (JobRun, "job_name", url_of_job),
    "due_slot": (DueSlot, "job_name", url_of_job),
}
