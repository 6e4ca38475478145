from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from documents import downloads, retention
from documents.forms import SearchForm
from documents.models import Document
from workspaces.models import Person

KIND = "document"


@require_safe
def download(request: HttpRequest, id: int) -> HttpResponseBase:
    visible = Document.objects.for_user(downloads.may_see(request, KIND, id)).listed()
    document = get_object_or_404(visible, pk=id)
    if document.purged_at:
        message = f"The document was {retention.purged_on(document)}; its file no longer exists.\n"
        return HttpResponse(message, "text/plain", 410)
    if not document.file:
        raise Http404
    return downloads.respond(request, document.file.name or "", document.name, document.content_type)


@require_safe
@login_required
def search(request: HttpRequest) -> HttpResponse:
    form = SearchForm(request)
    context = {"title": "Search", "form": form, "found": form.results()}
    status = 200 if form.is_valid() or not form.is_bound else 400
    return render(request, "documents/search.html", context, status=status)


def link(document: Document, user: Person) -> str:
    """Return a link that works for some minutes without sign-in: see `documents/downloads.py`."""
    return f"{reverse('documents:download', args=[document.pk])}?key={downloads.key_of(KIND, document.pk, user)}"
