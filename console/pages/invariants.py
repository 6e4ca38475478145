"""The invariants of the database with the results of their last checks, and the action that checks them."""

from django.contrib import messages
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse

from api.routes.queue import PERMISSION
from console.frame import act, actor_of, back, for_members, must_have, page, person_of, show
from console.invariants import MOST_OFFENDERS, SECONDS, SECONDS_OF_ONE, all_results, check_all
from console.subjects import named


@page
@for_members
def invariants(request: HttpRequest) -> HttpResponseBase:
    results = all_results()
    names = named(request, [subject for result in results for subject in result.offenders[:MOST_OFFENDERS]])
    context = {
        "results": [(each, [names[subject] for subject in each.offenders[:MOST_OFFENDERS]]) for each in results],
        "broken": sum(result.state == "broken" for result in results),
        "unchecked": sum(result.state in ("never", "unknown") for result in results),
        "may": person_of(request).has_perm(PERMISSION),
        "limits": (f"{SECONDS:.0f} s", f"{SECONDS_OF_ONE:.0f} s"),
    }
    return show(request, "console/promises.html", "Invariants", context)


@act
@for_members
def check(request: HttpRequest) -> HttpResponseBase:
    must_have(request, PERMISSION)
    checks = check_all(actor_of(request))
    level = messages.WARNING if checks.broken or checks.failed or checks.left else messages.SUCCESS
    messages.add_message(request, level, str(checks))
    return back(request, reverse("console:promises"))
