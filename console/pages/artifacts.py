"""The page of a file that a run made, with a preview."""

from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase

from console import artifact_previews, lists, page_images
from console.frame import find, page, show
from runs.models import Artifact


@page
def artifact(request: HttpRequest, id: int) -> HttpResponseBase:
    found = _found(request, id)
    look = artifact_previews.look_at(found, max(1, lists.number(request.GET.get("page")) or 1))
    return show(request, "console/artifact.html", f"File {id}", {"artifact": found, "look": look})


@page
def page_image(request: HttpRequest, id: int, number: int) -> HttpResponseBase:
    try:
        source = artifact_previews.drawn(_found(request, id))
    except artifact_previews.NotShown as error:
        raise Http404(str(error)) from error
    return page_images.drawn(source, number)


def _found(request: HttpRequest, id: int) -> Artifact:
    found: Artifact = find(request, Artifact.objects.listed(), id, "artifact")
    return found
