"""The dashboard: first the problems, then the overall state. Its actions pause and resume the run queue."""

from django.contrib import messages
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse

from api.routes.queue import PERMISSION
from console import attention, charts, situation
from console.frame import act, actor_of, back, must_have, page, person_of, show
from runs import queue
from work.operations.previews import reason_of

LATEST_FAILURES = 6


@page
def dashboard(request: HttpRequest) -> HttpResponseBase:
    person = situation.person_of(person_of(request))
    if person.is_stranger:
        return show(request, "console/no_workspace.html", "Welcome", {})
    now = situation.situation_of(person)
    context = {
        "now": now,
        "attention": attention.lines(now),
        "chart": charts.of_runs(now.submitted),
        "failures": now.failed.runs[:LATEST_FAILURES],
        "strips": [(slots, charts.of_hours(slots.hours)) for slots in now.job_slots],
    }
    return show(request, "console/dashboard.html", "Overview", context, live=reverse("console:live"))


@act
def pause_queue(request: HttpRequest) -> HttpResponseBase:
    must_have(request, PERMISSION)
    if queue.pause(actor=actor_of(request), reason=reason_of(request)):
        message = "Paused the run queue. No queued run starts; running runs continue, and new runs are accepted."
        messages.success(request, message)
    else:
        row = queue.current_row()
        by = f", by {row.paused_by}" if row and row.paused_by else ""
        messages.warning(request, f"The run queue is already paused{by}. Nothing was changed.")
    return back(request, reverse("console:dashboard"))


@act
def resume_queue(request: HttpRequest) -> HttpResponseBase:
    must_have(request, PERMISSION)
    if queue.resume(actor=actor_of(request)):
        messages.success(request, "Resumed the run queue. Queued runs start in their order.")
    else:
        messages.warning(request, "The run queue is not paused. Nothing was changed.")
    return back(request, reverse("console:dashboard"))
