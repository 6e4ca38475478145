from django.contrib.auth.models import User
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_safe

from documents import downloads
from documents.models import Document

KIND = "document"


@require_safe
def download(request: HttpRequest, id: int) -> HttpResponseBase:
    seen = Document.objects.for_user(downloads.may_see(request, KIND, id)).exclude(file="").defer("text")
    document = get_object_or_404(seen, pk=id)
    return downloads.answer(request, document.file.name or "", document.name, document.content_type)


def link(document: Document, user: User) -> str:
    """Good for some minutes, and for whoever has it: see `documents/downloads.py`."""
    return f"{reverse('documents:download', args=[document.pk])}?key={downloads.key_of(KIND, document.pk, user)}"
