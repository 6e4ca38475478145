"""The dashboard: what needs attention, then the overall state."""

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse

from console import attention, charts, situation
from console.frame import page, person_of, show

LATEST_FAILURES = 6


@page
def dashboard(request: HttpRequest) -> HttpResponseBase:
    person = situation.person_of(person_of(request))
    if person.is_stranger:
        return show(request, "console/no_workspace.html", "Welcome", {})
    now = situation.of(person)
    context = {
        "now": now,
        "attention": attention.lines(now),
        "chart": charts.of_runs(now.submitted),
        "failures": now.failed.runs[:LATEST_FAILURES],
        "strips": [(turns, charts.of_hours(turns.hours)) for turns in now.turns],
    }
    return show(request, "console/dashboard.html", "Overview", context, live=reverse("console:live"))
