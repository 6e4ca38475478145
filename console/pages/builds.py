"""The list of builds, and the page of one build with its waiting runs, saved time and changes."""

from collections import Counter

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse

from builds import operations, why
from builds.lifecycle import BUILD_STATES
from builds.models import Build, Configuration
from console import build_details, lists
from console.frame import act, actor_of, back, find, must_operate, operates, page, report, show
from console.logs import Log, last_lines, log_page
from work.models import Event
from work.operations.outcomes import Outcome, sentence
from work.operations.previews import reason_of

LATEST_EVENTS = 30
# Earlier failures are searched for in this many of the latest events.
MOST_EVENTS = 100


@page
def builds(request: HttpRequest) -> HttpResponseBase:
    status, configuration_id = request.GET.get("status", ""), lists.number(request.GET.get("configuration"))
    rows = Build.objects.for_user(request.user).listed()
    if configuration_id is not None:
        rows = rows.filter(configuration=configuration_id)
    if status in Build.Status:
        rows = rows.filter(status=status)
    configurations = Configuration.objects.for_user(request.user).listed()
    context = {
        "slice": lists.slice_of(request, rows),
        "statuses": Build.Status.values,
        "status": status if status in Build.Status else "",
        "has_filter": configuration_id is not None,
        "configuration": configurations.filter(pk=configuration_id).first() if configuration_id is not None else None,
    }
    return show(request, "console/builds.html", "Builds", context, live=reverse("console:live"))


@page
def build(request: HttpRequest, id: int) -> HttpResponseBase:
    large = ("configuration__files", "configuration__requirements")
    rows = Build.objects.select_related("configuration__workspace").defer(*large)
    build: Build = find(request, rows, id, "build")
    events = Event.objects.about(BUILD_STATES.kind, id).exclude(kind="LOG")
    latest = list(events.order_by("-sequence")[:MOST_EVENTS])
    context = {
        "build": build,
        "sentence": build_details.in_words(build),
        "waited": build_details.seconds_waited(build),
        "may": operates(request, build.configuration.workspace_id),
        "explanation": why.explain(build, user=request.user) if build.status == Build.Status.QUEUED else None,
        "waiting": build_details.waiting_for(build, request.user),
        "served": build_details.served_by(build),
        "changes": build_details.changes_of(build),
        "failures": build_details.earlier_failures(build, latest),
        # A build that was never claimed has no output.
        "log": last_lines(BUILD_STATES.kind, id) if build.claim_token else Log((), False),
        "events": latest[:LATEST_EVENTS],
    }
    live = reverse("console:live_one", args=["build", id]) if build.status not in Build.TERMINAL else ""
    return show(request, "console/build.html", f"Build {id}", context, live=live)


@page
def log(request: HttpRequest, id: int) -> HttpResponseBase:
    """Show the output of a build on a page with a search, or send it as a file."""
    find(request, Build.objects.listed(), id, "build")
    return log_page(request, BUILD_STATES.kind, id, f"Build {id}", reverse("console:build", args=[id]))


@act
def cancel(request: HttpRequest, id: int) -> HttpResponseBase:
    build = _operated_build(request, id)
    return _report(request, operations.cancel(build, actor=actor_of(request), reason=reason_of(request)), id)


@act
def again(request: HttpRequest, id: int) -> HttpResponseBase:
    build = _operated_build(request, id)
    return _report(request, operations.build_again(build, actor=actor_of(request)), id)


def _operated_build(request: HttpRequest, id: int) -> Build:
    build: Build = find(request, Build.objects.listed(), id, "build")
    must_operate(request, build.configuration.workspace_id)
    return build


def _report(request: HttpRequest, outcome: Outcome, id: int) -> HttpResponseBase:
    report(request, outcome, sentence(Build, Counter([outcome]), BUILD_STATES.claimed))
    return back(request, reverse("console:build", args=[id]))
