from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_safe

from documents import downloads
from runs.models import Artifact
from workspaces.models import Person

KIND = "artifact"


@require_safe
def download_artifact(request: HttpRequest, id: int) -> HttpResponseBase:
    artifact = get_object_or_404(Artifact.objects.for_user(downloads.may_see(request, KIND, id)), pk=id)
    return downloads.respond(request, artifact.file, artifact.name, artifact.content_type)


def link(artifact: Artifact, user: Person) -> str:
    """Return a link that works for a few minutes for anyone who has it: see `documents/downloads.py`."""
    return f"{reverse('runs:download_artifact', args=[artifact.pk])}?key={downloads.key_of(KIND, artifact.pk, user)}"
