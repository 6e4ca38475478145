"""The list of workers, and the page of one with its heartbeat, its work and the action to drain it."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse

from api.audit import record_of
from api.sight import doing
from console import lists
from console.frame import act, back, for_members, must_have, page, person_of, reason_of, show
from console.queues import queues
from console.subjects import Named, named
from work import clock, draining
from work.boots import WORKER_STATES
from work.models import Event, Worker
from work.operations.outcomes import DONE
from work.why import Crew

# The filters of the list; "" means all that have not stopped.
STATES = ("", "alive", "silent", "stopped", "all")
LATEST_EVENTS = 50


@page
@for_members
def workers(request: HttpRequest) -> HttpResponseBase:
    state = request.GET.get("state", "")
    state = state if state in STATES else ""
    piece = lists.slice_of(request, _narrowed(state))
    crew = _crew(piece, state)
    context = {
        "slice": piece,
        "workers": _with_what_they_do(request, list(piece.rows)),
        "states": STATES,
        "chosen": state,
        "alive": len(crew.workers),
        "draining": sum(worker.is_draining for worker in crew.workers),
        "queues": queues(crew),
        "version": settings.ADE_VERSION,
    }
    return show(request, "console/workers.html", "Workers", context, live=reverse("console:live"))


@page
@for_members
def worker(request: HttpRequest, id: int) -> HttpResponseBase:
    found = _worker(id)
    clock.keep_measured()
    ((_, does),) = _with_what_they_do(request, [found])
    context = {
        "worker": found,
        "doing": does,
        "silence": (clock.now() - found.heartbeat_at).total_seconds(),
        "may": found.state == "alive" and person_of(request).has_perm(draining.PERMISSION),
        "drain_seconds": settings.ADE_DRAIN_SECONDS,
        "version": settings.ADE_VERSION,
        "events": Event.objects.about(WORKER_STATES.kind, id).order_by("-sequence")[:LATEST_EVENTS],
    }
    return show(request, "console/worker.html", f"Worker {found.name}", context, live=reverse("console:live"))


@act
@for_members
def drain(request: HttpRequest, id: int) -> HttpResponseBase:
    must_have(request, draining.PERMISSION)
    found = _worker(id)
    if record := record_of(request):
        record.saw(WORKER_STATES.kind, id, None)
    outcome = draining.drain(found, actor=person_of(request).get_username(), reason=reason_of(request))
    level = messages.SUCCESS if outcome in DONE else messages.WARNING
    messages.add_message(request, level, draining.said(found, outcome))
    return back(request, reverse("console:worker", args=[id]))


def _worker(id: int) -> Worker:
    found = Worker.objects.filter(pk=id).first()
    if found is None:
        raise Http404("No such worker.")
    return found


def _narrowed(state: str) -> "QuerySet[Worker]":
    if state == "":
        return Worker.objects.filter(stopped_at=None)
    return Worker.objects.all() if state == "all" else getattr(Worker.objects, state)()


def _crew(piece: lists.Slice, state: str) -> Crew:
    """Return the alive workers. Usually all of them are on the page and need no further query."""
    if state or piece.newer or piece.older:
        return Crew.now()
    return Crew(tuple(worker for worker in piece.rows if worker.state == "alive"))


def _with_what_they_do(request: HttpRequest, workers: list[Worker]) -> list[tuple[Worker, list[Named]]]:
    known: Any = named(request, [subject for worker in workers for subject in doing(worker)])
    return [(worker, [known[subject] for subject in doing(worker)]) for worker in workers]
