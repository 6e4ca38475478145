"""For rows that events and workers name by kind and ID: finds which a user may know about, and the page of each."""

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

# Kinds of rows that belong to no workspace. Every member may know about these rows.
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
    # None if the user may not know about the row.
    id: int | None
    # The page that shows the row; empty if there is none.
    url: str = ""

    def __str__(self) -> str:
        return f"{plain(self.kind)} {self.id}" if self.id is not None else f"{plain(self.kind)} of another workspace"


def named(request: HttpRequest, subjects: Iterable[Subject]) -> Mapping[Subject, Named]:
    """Return names and links for rows. Costs one query per kind, and another query for each kind whose rows are shown
    on the page of another row.
    """
    wanted = set(subjects)
    known = known_to(request, wanted)
    urls = _urls(known)
    return {
        (kind, id): Named(kind, id, urls.get((kind, id), "")) if (kind, id) in known else Named(kind, None)
        for kind, id in wanted
    }


def known_to(request: HttpRequest, subjects: Set[Subject]) -> Set[Subject]:
    """Return the rows that the user may know about. The caller must have checked that the user is a member of a
    workspace.
    """
    return subjects if is_superuser(request) else visible(request.user, subjects, SHARED)


def url_of_job(name: str) -> str:
    """Return the URL of a job's page, or "" if the name does not fit into a URL and so is not a job of ours."""
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


# Kinds whose rows have no page of their own: the column that leads to another row, and the URL of that row's page.
_ON_OTHERS: dict[str, tuple[Any, str, Callable[[Any], str]]] = {
    "job": (DocumentProcessingJob, "document_id", _url_of_document),
    "stage": (Stage, "job__document_id", _url_of_document),
    "job_run": (JobRun, "job_name", url_of_job),
    "due_slot": (DueSlot, "job_name", url_of_job),
}
