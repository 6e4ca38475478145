from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.http import HttpRequest

from documents import intake, sniffing, uploads
from documents.intake import AlreadyThere, NotStored, Refused
from documents.models import Document, Workspace


class IntakeForm(forms.Form):
    """Makes a document, or says why not; `there` is the one with the same bytes, if that is why."""

    field: str
    name_sent = ""
    there: Document | None = None
    answer_code = 200

    def __init__(self, request: HttpRequest, *, is_sent: bool) -> None:
        super().__init__(request.POST if is_sent else None, request.FILES if is_sent else None)
        self.mine = Workspace.objects.operated_by(request.user).order_by("name")
        self.actor = request.user.get_username()

    def made(self) -> Document | None:
        if not self.is_valid():
            return None
        try:
            return self.make()
        except Refused as refused:
            self.there = refused.document if isinstance(refused, AlreadyThere) else None
            self.answer_code = 503 if isinstance(refused, NotStored) else 200
            self.add_error(self.field, ValidationError(str(refused), code=refused.code))
        return None

    def make(self) -> Document:
        raise NotImplementedError


class UploadForm(IntakeForm):
    workspace = forms.ModelChoiceField(Workspace.objects.none())
    file = forms.FileField(
        allow_empty_file=True,
        help_text=f"{sniffing.TAKEN}. The type is told from the content, and the name has to agree.",
        widget=forms.FileInput(attrs={"accept": ",".join(sniffing.SUFFIXES)}),
    )
    field = "file"

    def __init__(self, request: HttpRequest, *, is_sent: bool) -> None:
        super().__init__(request, is_sent=is_sent)
        workspaces: Any = self.fields["workspace"]
        workspaces.queryset = self.mine
        if len(mine := self.mine[:2]) == 1:
            workspaces.initial = mine[0]
        if uploads.was_too_large(request):
            self.fields["file"].error_messages["required"] = str(intake.too_large())

    def make(self) -> Document:
        sent = self.cleaned_data["file"]
        self.name_sent = sent.name
        return intake.receive(self.cleaned_data["workspace"], sent, sent.name, sent.content_type or "", self.actor)


class AgainForm(IntakeForm):
    """Wants another document of the bytes of one that is there: they need not be sent again."""

    again = forms.ModelChoiceField(Document.objects.none(), widget=forms.HiddenInput)
    name = forms.CharField(widget=forms.HiddenInput)
    field = "again"

    def __init__(self, request: HttpRequest, *, is_sent: bool) -> None:
        super().__init__(request, is_sent=is_sent)
        documents: Any = self.fields["again"]
        documents.queryset = Document.objects.kept().filter(workspace__in=self.mine).defer("text")

    def make(self) -> Document:
        return intake.store_again(self.cleaned_data["again"], self.cleaned_data["name"], self.actor)
