"""The list of workers, and the page of one worker with its heartbeat, its work and the action that drains it."""

from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse

from api.audit import record_of
from api.visibility import doing
from console import lists
from console.frame import act, actor_of, back, for_members, must_have, page, person_of, report, show
from console.queues import queues
from console.subjects import Named, named
from work import clock, draining
from work.boots import WORKER_STATES
from work.models import Event, Worker
from work.operations.previews import reason_of
from work.why import LiveWorkers

# The filters of the list; "" selects all workers that have not stopped.
STATES = ("", "alive", "silent", "stopped", "all")
LATEST_EVENTS = 50


@page
@for_members
def workers(request: HttpRequest) -> HttpResponseBase:
    state = request.GET.get("state", "")
    state, rows = state if state in STATES else "", Worker.objects.all()
    if state == "":
        rows = rows.filter(stopped_at=None)
    elif state != "all":
        rows = getattr(Worker.objects, state)()
    slice = lists.slice_of(request, rows)
    # If all workers that have not stopped are on this page, the alive ones need no further query.
    is_complete = not (state or slice.newer or slice.older)
    crew = (
        LiveWorkers(tuple(worker for worker in slice.rows if worker.state == "alive"))
        if is_complete
        else LiveWorkers.now()
    )
    context = {
        "slice": slice,
        "workers": _with_current_work(request, list(slice.rows)),
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
    worker = _find(id)
    clock.keep_measured()
    ((_, work),) = _with_current_work(request, [worker])
    context = {
        "worker": worker,
        "work": work,
        "silence": (clock.now() - worker.heartbeat_at).total_seconds(),
        "may": worker.state == "alive" and person_of(request).has_perm(draining.PERMISSION),
        "drain_seconds": settings.ADE_DRAIN_SECONDS,
        "version": settings.ADE_VERSION,
        "events": Event.objects.about(WORKER_STATES.kind, id).order_by("-sequence")[:LATEST_EVENTS],
    }
    return show(request, "console/worker.html", f"Worker {worker.name}", context, live=reverse("console:live"))


@act
@for_members
def drain(request: HttpRequest, id: int) -> HttpResponseBase:
    must_have(request, draining.PERMISSION)
    worker = _find(id)
    if record := record_of(request):
        record.saw(WORKER_STATES.kind, id, None)
    outcome = draining.drain(worker, actor=actor_of(request), reason=reason_of(request))
    report(request, outcome, draining.describe_outcome(worker, outcome))
    return back(request, reverse("console:worker", args=[id]))


def _find(id: int) -> Worker:
    worker = Worker.objects.filter(pk=id).first()
    if worker is None:
        raise Http404("No such worker.")
    return worker


def _with_current_work(request: HttpRequest, workers: list[Worker]) -> list[tuple[Worker, list[Named]]]:
    names: Any = named(request, [subject for worker in workers for subject in doing(worker)])
    return [(worker, [names[subject] for subject in doing(worker)]) for worker in workers]
