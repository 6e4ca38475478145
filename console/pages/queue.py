"""Pausing and resuming the queue of runs."""

from django.contrib import messages
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse

from console.frame import act, back, must_have, person_of, reason_of
from runs import queue

# The same permission as in the admin and the API.
PERMISSION = "runs.change_queue"


@act
def pause(request: HttpRequest) -> HttpResponseBase:
    must_have(request, PERMISSION)
    if queue.pause(actor=person_of(request).get_username(), reason=reason_of(request)):
        said = "Paused the run queue. No queued run starts; running runs continue, and new runs are accepted."
        messages.success(request, said)
    else:
        messages.warning(request, f"The run queue is already paused{_by_whom()}. Nothing was changed.")
    return back(request, reverse("console:dashboard"))


@act
def resume(request: HttpRequest) -> HttpResponseBase:
    must_have(request, PERMISSION)
    if queue.resume(actor=person_of(request).get_username()):
        messages.success(request, "Resumed the run queue. Queued runs start in their order.")
    else:
        messages.warning(request, "The run queue is not paused. Nothing was changed.")
    return back(request, reverse("console:dashboard"))


def _by_whom() -> str:
    row = queue.now()
    return f", by {row.paused_by}" if row and row.paused_by else ""
