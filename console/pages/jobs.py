"""The list of scheduled jobs, and the page of one job with its slots and actions and the reason why it waits."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from django.contrib import messages
from django.http import Http404, HttpRequest, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html

from api.audit import record_of
from console import formatting
from console.calendar import SQUARES, calendar_of, moment_of
from console.frame import act, actor_of, back, for_members, must_have, page, person_of, show
from console.job_status import Line, all_lines, line_of
from schedules import history, requests, why
from schedules.history import SCHEDULED_JOB_STATES
from schedules.job_runs import JOB_RUN_STATES
from schedules.jobs import Job, UnknownJob, is_declared, job_named
from schedules.models import JobRun
from schedules.requests import NotASlot, SlotTaken
from work.models import Event
from work.operations.commands import clean
from work.operations.previews import reason_of

# The same permission as in the admin and the API.
CHANGE = "schedules.change_scheduledjob"
LATEST_EVENTS = 100
# A preview lists at most this many slots.
MOST_NAMED = 200


@page
@for_members
def jobs(request: HttpRequest) -> HttpResponseBase:
    context = {"lines": all_lines()}
    return show(request, "console/jobs.html", "Jobs", context, live=reverse("console:live"))


@page
@for_members
def job(request: HttpRequest, name: str) -> HttpResponseBase:
    line, each = _line(name), "each" in request.GET
    until, slot = request.GET.get("until", ""), request.GET.get("slot", "")
    events = Event.objects.about(SCHEDULED_JOB_STATES.kind, line.row.pk or 0)
    context = {
        "line": line,
        "may": line.job is not None and person_of(request).has_perm(CHANGE),
        "calendar": calendar_of(line.row, until, slot, each=each),
        "each": each,
        "most": SQUARES,
        "events": events.order_by("-sequence")[:LATEST_EVENTS],
    }
    return show(request, "console/job.html", name, context, live=reverse("console:live"))


@page
@for_members
def show_why(request: HttpRequest, name: str) -> HttpResponseBase:
    """Show why a job waits. This has its own page because it costs as much as the rest of the job's page."""
    context = {"explanation": why.explain(_line(name).row), "name": name}
    return show(request, "console/job_why.html", f"Why {name} is waiting", context, live=reverse("console:live"))


@page
@for_members
def job_run(request: HttpRequest, name: str, id: int) -> HttpResponseBase:
    run = JobRun.objects.filter(job_name=name, pk=id).first()
    if run is None:
        raise Http404("No such job run.")
    can_repeat = run.finished_at and run.status != JobRun.Status.SUCCESS and is_declared(name)
    context = {
        "run": run,
        "may": can_repeat and person_of(request).has_perm(CHANGE),
        "events": Event.objects.about(JOB_RUN_STATES.kind, id).order_by("-sequence")[:LATEST_EVENTS],
    }
    live = "" if run.finished_at else reverse("console:live")
    return show(request, "console/job_run.html", f"Job run {id}", context, live=live)


@act
@for_members
def trigger(request: HttpRequest, name: str) -> HttpResponseBase:
    """Run a slot of the job's schedule, or run the job now: either additionally, or in place of a slot that has already
    run.
    """
    job, actor = _changeable_job(request, name), actor_of(request)
    with _refusals(request, job):
        if slot := request.POST.get("slot"):
            due = requests.run_slot(job, _moment(slot), actor=actor)
        else:
            covers = request.POST.get("in_stead_of")
            due = requests.run_now(job, actor=actor, covers=_moment(covers) if covers else None)
        explanation = why.explain_due(due)
        level = messages.WARNING if explanation.holding else messages.SUCCESS
        messages.add_message(request, level, explanation.message)
    return redirect("console:job", name)


@act
@for_members
def pause(request: HttpRequest, name: str) -> HttpResponseBase:
    actor = actor_of(request)
    row = history.introduce(_changeable_job(request, name), actor=actor)
    if history.pause(row, actor=actor, reason=reason_of(request)):
        messages.success(request, f"Paused {name}. Its slots are passed over until it is resumed.")
    else:
        messages.warning(request, f"{name} is already paused. Nothing was changed.")
    return back(request, reverse("console:job", args=[name]))


@act
@for_members
def resume(request: HttpRequest, name: str) -> HttpResponseBase:
    actor = actor_of(request)
    row = history.introduce(_changeable_job(request, name), actor=actor)
    if history.resume(row, actor=actor):
        messages.success(request, f"Resumed {name}. It continues with its next slot.")
    else:
        messages.warning(request, f"{name} is not paused. Nothing was changed.")
    return back(request, reverse("console:job", args=[name]))


@page
@for_members
def rehearse_backfill(request: HttpRequest, name: str) -> HttpResponseBase:
    """Show which slots a backfill would run, without running them."""
    job = _changeable_job(request, name)
    with _refusals(request, job):
        first, last = _range(request.GET)
        slots = requests.preview_backfill(job, first, last)
        context = {"name": name, "first": first, "last": last, "slots": slots, "free": slots.free[:MOST_NAMED]}
        return show(request, "console/backfill.html", f"Backfill {name}", context)
    return redirect("console:job", name)


@act
@for_members
def backfill(request: HttpRequest, name: str) -> HttpResponseBase:
    job = _changeable_job(request, name)
    with _refusals(request, job):
        slots = requests.backfill(job, *_range(request.POST), actor=actor_of(request))
        number = formatting.number(len(slots.free), "slot")
        skipped = f"Skipped {formatting.number(len(slots.taken), 'slot')} of the range: already run or waiting."
        messages.success(request, f"Requested {number}, to run one after the other, the oldest first. {skipped}")
    return redirect("console:job", name)


def _line(name: str) -> Line:
    line = line_of(name)
    if line is None:
        raise Http404("No such job.")
    return line


def _changeable_job(request: HttpRequest, name: str) -> Job:
    must_have(request, CHANGE)
    try:
        job = job_named(name)
    except UnknownJob as error:
        raise Http404("No such job is declared in the code.") from error
    line = line_of(name)
    if (record := record_of(request)) and line and line.row.pk:
        record.saw("scheduled_job", line.row.pk, None)
    return job


def _range(parameters: QueryDict) -> tuple[datetime, datetime]:
    return _moment(parameters.get("from", "")), _moment(parameters.get("to", ""))


def _moment(text: str) -> datetime:
    moment = moment_of(text)
    if moment is None:
        problem = f"The time {clean(text)[:40]} is not valid" if text else "The time is missing"
        raise NotASlot(f"{problem}. Use a time in UTC, for example 2026-03-01T06:00.")
    return moment


@contextmanager
def _refusals(request: HttpRequest, job: Job) -> Iterator[None]:
    try:
        yield
    except (SlotTaken, NotASlot) as error:
        message = formatting.after("No run was requested", str(error))
        if isinstance(error, SlotTaken) and error.job_run:
            path = reverse("console:job_run", args=[job.name, error.job_run.pk])
            message = format_html('{} <a href="{}">See job run {}</a>', message, path, error.job_run.pk)
        messages.warning(request, message)
