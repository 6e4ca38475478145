"""The list of refused late writes, each of which would have corrupted a row."""

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse

from console.frame import page, show
from console.late_writes import LOOKED_AT, cases_for


@page
def late_writes(request: HttpRequest) -> HttpResponseBase:
    found = cases_for(request)
    context = {"found": found, "slice": found.slice, "most": LOOKED_AT}
    live = reverse("console:live")
    return show(request, "console/late_writes.html", "Refused late writes", context, live=live)
