"""The list of builds, and the page of one with waiting runs, saved time and changes."""

from collections import Counter
from typing import Any

from django.contrib import messages
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse

from builds import lifecycle, why
from builds.lifecycle import BUILD_STATES
from builds.models import Build, BuildQuerySet, Configuration
from console import building, lists
from console.frame import act, back, find, must_operate, operates, page, person_of, reason_of, show
from console.logs import Log, last_lines, log_page
from work.models import Event
from work.operations.outcomes import DONE, Outcome, of_cancel, sentence

LATEST_EVENTS = 30
# Events that are searched for failures.
MOST_EVENTS = 100


@page
def builds(request: HttpRequest) -> HttpResponseBase:
    status, configuration = request.GET.get("status", ""), lists.number(request.GET.get("configuration"))
    rows = _narrowed(Build.objects.for_user(request.user).listed(), status, configuration)
    mine = Configuration.objects.for_user(request.user)
    context = {
        "slice": lists.slice_of(request, rows),
        "statuses": Build.Status.values,
        "status": status if status in Build.Status else "",
        "is_narrowed": configuration is not None,
        "configuration": mine.listed().filter(pk=configuration).first() if configuration is not None else None,
    }
    return show(request, "console/builds.html", "Builds", context, live=reverse("console:live"))


@page
def build(request: HttpRequest, id: int) -> HttpResponseBase:
    found: Build = find(request, _whole(), id, "build")
    events = Event.objects.about(BUILD_STATES.kind, id).exclude(kind="LOG")
    latest = list(events.order_by("-sequence")[:MOST_EVENTS])
    context = {
        "build": found,
        "said": building.in_words(found),
        "waited": building.seconds_waited(found),
        "may": operates(request, found.configuration.workspace_id),
        "explanation": why.explain(found, user=request.user) if found.status == "queued" else None,
        "waiting": building.waiting_for(found, request.user),
        "served": building.served_by(found),
        "changes": building.changes_of(found),
        "mishaps": building.mishaps(found, latest),
        # Without a claim there is no output yet.
        "log": last_lines(BUILD_STATES.kind, id) if found.claim_token else Log((), False),
        "events": latest[:LATEST_EVENTS],
    }
    live = reverse("console:live_one", args=["build", id]) if found.status not in Build.TERMINAL else ""
    return show(request, "console/build.html", f"Build {id}", context, live=live)


@page
def log(request: HttpRequest, id: int) -> HttpResponseBase:
    """Show the whole output of a build, with a search, or send it as a file."""
    find(request, Build.objects.listed(), id, "build")
    return log_page(request, BUILD_STATES.kind, id, f"Build {id}", reverse("console:build", args=[id]))


@act
def cancel(request: HttpRequest, id: int) -> HttpResponseBase:
    found = _operated(request, id)
    after = lifecycle.cancel(found, actor=person_of(request).get_username(), reason=reason_of(request))
    return _told(request, found, of_cancel(BUILD_STATES, found.status, after))


@act
def again(request: HttpRequest, id: int) -> HttpResponseBase:
    found = _operated(request, id)
    queued = lifecycle.again(id, actor=person_of(request).get_username())
    return _told(request, found, Outcome.MADE if queued else Outcome.NOT_ENDED)


def _whole() -> BuildQuerySet:
    large = ("configuration__files", "configuration__requirements")
    return Build.objects.select_related("configuration__workspace").defer(*large)


def _narrowed(rows: BuildQuerySet, status: str, configuration: int | None) -> BuildQuerySet:
    chosen: dict[str, Any] = {} if configuration is None else {"configuration": configuration}
    return rows.filter(**chosen, **({"status": status} if status in Build.Status else {}))


def _operated(request: HttpRequest, id: int) -> Build:
    found: Build = find(request, Build.objects.listed(), id, "build")
    must_operate(request, found.configuration.workspace_id)
    return found


def _told(request: HttpRequest, build: Build, outcome: Outcome) -> HttpResponseBase:
    said = sentence(Build, Counter([outcome]), BUILD_STATES.claimed)
    messages.add_message(request, messages.SUCCESS if outcome in DONE else messages.WARNING, said)
    return back(request, reverse("console:build", args=[build.pk]))
