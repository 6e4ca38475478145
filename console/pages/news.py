"""The news: changes since the user last confirmed having seen them."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse

from console import changes, visits
from console.frame import act, for_members, page, person_of, show


@page
@for_members
def news(request: HttpRequest) -> HttpResponseBase:
    person = person_of(request)
    context = {"changes": changes.changes_since(person, visits.absence_of(person)), "most": changes.MOST_SHOWN}
    # This page is not live, so that the user confirms exactly the changes that it shows.
    return show(request, "console/news.html", "Since your last visit", context)


@act
@for_members
def mark_as_seen(request: HttpRequest) -> HttpResponseBase:
    until = visits.moment_of(request.POST.get("until", ""))
    if until is None:
        messages.warning(request, "Nothing was changed: the form did not contain a valid time.")
    elif visits.mark_as_seen(person_of(request), until):
        messages.success(request, f"Marked everything up to {until:%H:%M:%S} UTC as seen.")
    else:
        messages.warning(request, "Nothing was changed: you had already marked this as seen.")
    return HttpResponseRedirect(reverse("console:news"))
