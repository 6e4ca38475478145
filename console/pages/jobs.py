"""The list of scheduled jobs, and the page of one with its slots, its actions and why it waits."""

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
from console.frame import act, back, for_members, must_have, page, person_of, reason_of, show
from console.job_status import Line, all_lines, line_of
from schedules import asking, history, why
from schedules.asking import NotASlot, SlotTaken
from schedules.history import SCHEDULED_JOB_STATES
from schedules.job_runs import JOB_RUN_STATES
from schedules.jobs import Job, UnknownJob, is_declared, job_named
from schedules.models import DueSlot, JobRun
from work.models import Event
from work.operations.commands import clean

# The same permission as in the admin and the API.
CHANGE = "schedules.change_scheduledjob"
LATEST_EVENTS = 100
# How many slots a rehearsal lists.
MOST_NAMED = 200


@page
@for_members
def jobs(request: HttpRequest) -> HttpResponseBase:
    context = {"lines": all_lines()}
    return show(request, "console/jobs.html", "Jobs", context, live=reverse("console:live"))


@page
@for_members
def job(request: HttpRequest, name: str) -> HttpResponseBase:
    line, asked = _line(name), request.GET
    each = "each" in asked
    context = {
        "line": line,
        "may": line.job is not None and _may(request),
        "calendar": calendar_of(line.row, asked.get("until", ""), asked.get("slot", ""), each=each),
        "each": each,
        "most": SQUARES,
        "events": Event.objects.about(SCHEDULED_JOB_STATES.kind, line.row.pk or 0).order_by("-sequence")[
            :LATEST_EVENTS
        ],
    }
    return show(request, "console/job.html", name, context, live=reverse("console:live"))


@page
@for_members
def show_why(request: HttpRequest, name: str) -> HttpResponseBase:
    """Show why a job waits, on a page of its own because this costs as much as the rest of the job's page."""
    context = {"explanation": why.explain(_line(name).row), "name": name}
    return show(request, "console/job_why.html", f"Why {name} is waiting", context, live=reverse("console:live"))


@page
@for_members
def job_run(request: HttpRequest, name: str, id: int) -> HttpResponseBase:
    found = JobRun.objects.filter(job_name=name, pk=id).first()
    if found is None:
        raise Http404("No such job run.")
    context = {
        "run": found,
        "may": found.finished_at and found.status != JobRun.Status.SUCCESS and is_declared(name) and _may(request),
        "events": Event.objects.about(JOB_RUN_STATES.kind, id).order_by("-sequence")[:LATEST_EVENTS],
    }
    live = "" if found.finished_at else reverse("console:live")
    return show(request, "console/job_run.html", f"Job run {id}", context, live=live)


@act
@for_members
def trigger(request: HttpRequest, name: str) -> HttpResponseBase:
    """Run the job now, or a slot of its schedule, or now in place of a slot that has already run."""
    job, actor, asked = _declared(request, name), person_of(request).get_username(), request.POST
    with _refusals(request, job):
        if slot := asked.get("slot"):
            due = asking.run_slot(job, _meant(slot), actor=actor)
        else:
            covers = asked.get("in_stead_of")
            due = asking.run_now(job, actor=actor, covers=_meant(covers) if covers else None)
        _tell(request, due)
    return _to(name)


@act
@for_members
def pause(request: HttpRequest, name: str) -> HttpResponseBase:
    actor = person_of(request).get_username()
    row = history.introduce(_declared(request, name), actor=actor)
    if history.pause(row, actor=actor, reason=reason_of(request)):
        messages.success(request, f"Paused {name}. Its slots are passed over until it is resumed.")
    else:
        messages.warning(request, f"{name} is already paused. Nothing was changed.")
    return back(request, _path(name))


@act
@for_members
def resume(request: HttpRequest, name: str) -> HttpResponseBase:
    actor = person_of(request).get_username()
    row = history.introduce(_declared(request, name), actor=actor)
    if history.resume(row, actor=actor):
        messages.success(request, f"Resumed {name}. It continues with its next slot.")
    else:
        messages.warning(request, f"{name} is not paused. Nothing was changed.")
    return back(request, _path(name))


@page
@for_members
def rehearse_backfill(request: HttpRequest, name: str) -> HttpResponseBase:
    """Show which slots a backfill would run, without running them."""
    job = _declared(request, name)
    with _refusals(request, job):
        first, last = _range(request.GET)
        found = asking.rehearse(job, first, last)
        context = {"name": name, "first": first, "last": last, "found": found, "free": found.free[:MOST_NAMED]}
        return show(request, "console/backfill.html", f"Backfill {name}", context)
    return _to(name)


@act
@for_members
def backfill(request: HttpRequest, name: str) -> HttpResponseBase:
    job, actor = _declared(request, name), person_of(request).get_username()
    with _refusals(request, job):
        found = asking.backfill(job, *_range(request.POST), actor=actor)
        said = f"Requested {formatting.number(len(found.free), 'slot')}, to run one after the other, the oldest first."
        skipped = f"Skipped {formatting.number(len(found.taken), 'slot')} of the range: already run or waiting."
        messages.success(request, f"{said} {skipped}")
    return _to(name)


def _line(name: str) -> Line:
    found = line_of(name)
    if found is None:
        raise Http404("No such job.")
    return found


def _may(request: HttpRequest) -> bool:
    return person_of(request).has_perm(CHANGE)


def _declared(request: HttpRequest, name: str) -> Job:
    must_have(request, CHANGE)
    try:
        job = job_named(name)
    except UnknownJob as error:
        raise Http404("No such job is declared in the code.") from error
    line = line_of(name)
    if (record := record_of(request)) and line and line.row.pk:
        record.saw("scheduled_job", line.row.pk, None)
    return job


def _range(asked: QueryDict) -> tuple[datetime, datetime]:
    return _meant(asked.get("from", "")), _meant(asked.get("to", ""))


def _meant(text: str) -> datetime:
    found = moment_of(text)
    if found is None:
        wrong = f"The time {clean(text)[:40]} is not valid" if text else "The time is missing"
        raise NotASlot(f"{wrong}. Use a time in UTC, for example 2026-03-01T06:00.")
    return found


@contextmanager
def _refusals(request: HttpRequest, job: Job) -> Iterator[None]:
    try:
        yield
    except SlotTaken as taken:
        messages.warning(request, _said_of(taken, job))
    except NotASlot as error:
        messages.warning(request, formatting.after("No run was requested", str(error)))


def _said_of(taken: SlotTaken, job: Job) -> str:
    if taken.job_run is None:
        return formatting.after("No run was requested", str(taken))
    path = reverse("console:job_run", args=[job.name, taken.job_run.pk])
    said = formatting.after("No run was requested", str(taken))
    return format_html('{} <a href="{}">See job run {}</a>', said, path, taken.job_run.pk)


def _tell(request: HttpRequest, due: DueSlot) -> None:
    found = why.explain_due(due)
    messages.add_message(request, messages.WARNING if found.holding else messages.SUCCESS, found.message)


def _path(name: str) -> str:
    return reverse("console:job", args=[name])


def _to(name: str) -> HttpResponseBase:
    return redirect(_path(name))
