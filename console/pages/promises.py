"""Promises: what must always hold, and whether it did at the last check."""

from django.contrib import messages
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse

from api.routes.queue import PERMISSION
from console.frame import act, back, for_members, must_have, page, person_of, show
from console.invariants import MOST_OFFENDERS, SECONDS, SECONDS_OF_ONE, check_all
from console.invariants import promises as all_promises
from console.subjects import named


@page
@for_members
def promises(request: HttpRequest) -> HttpResponseBase:
    found = all_promises()
    known = named(request, [subject for promise in found for subject in promise.offenders[:MOST_OFFENDERS]])
    context = {
        "promises": [(each, [known[subject] for subject in each.offenders[:MOST_OFFENDERS]]) for each in found],
        "broken": sum(promise.state == "broken" for promise in found),
        "unchecked": sum(promise.state in ("never", "unknown") for promise in found),
        "may": person_of(request).has_perm(PERMISSION),
        "limits": (f"{SECONDS:.0f} s", f"{SECONDS_OF_ONE:.0f} s"),
    }
    return show(request, "console/promises.html", "Invariants", context)


@act
@for_members
def check(request: HttpRequest) -> HttpResponseBase:
    must_have(request, PERMISSION)
    done = check_all(person_of(request).get_username())
    level = messages.WARNING if done.broken or done.troubled or done.left else messages.SUCCESS
    messages.add_message(request, level, str(done))
    return back(request, reverse("console:promises"))
