from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.core.exceptions import ValidationError
from django.http import HttpRequest

from documents import intake, sniffing, uploads
from documents.intake import DuplicateFile, Refused, StorageFailed
from documents.models import Document
from documents.search import MOST_IN_ALL, WAYS, SearchResults, search
from documents.search.query import MOST_CHARACTERS
from workspaces.models import Workspace

# Hits per page.
HITS = 20


class IntakeForm(forms.Form):
    """Creates a document, or shows why its file was refused.

    If the workspace already has a document with the same bytes, `there` is that document.
    """

    field: str
    name_sent = ""
    there: Document | None = None
    answer_code = 200

    def __init__(self, request: HttpRequest, *, is_sent: bool) -> None:
        super().__init__(request.POST if is_sent else None, request.FILES if is_sent else None)
        self.operated = Workspace.objects.operated_by(request.user).order_by("name")
        self.actor = request.user.get_username()

    def made(self) -> Document | None:
        if not self.is_valid():
            return None
        try:
            return self.make()
        except Refused as refused:
            self.there = refused.document if isinstance(refused, DuplicateFile) else None
            self.answer_code = 503 if isinstance(refused, StorageFailed) else 200
            self.add_error(self.field, ValidationError(str(refused), code=refused.code))
        return None

    def make(self) -> Document:
        raise NotImplementedError


@dataclass(frozen=True)
class Received:
    """What became of one of several files."""

    name: str
    document: Document | None = None
    refused: Refused | None = None

    @property
    def there(self) -> Document | None:
        """The document of the workspace that has the same bytes."""
        return self.refused.document if isinstance(self.refused, DuplicateFile) else None


class FileInput(forms.FileInput):
    """Lets people choose several files. The field checks the last; `made_each` takes them all."""

    allow_multiple_selected = True

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Any:
        return files.get(name)


class UploadForm(IntakeForm):
    workspace = forms.ModelChoiceField(Workspace.objects.none())
    file = forms.FileField(
        allow_empty_file=True,
        help_text=f"{sniffing.TAKEN}. The file type is detected from the content and must match the extension.",
        widget=FileInput(attrs={"accept": ",".join(sniffing.SUFFIXES)}),
    )
    field = "file"

    def __init__(self, request: HttpRequest, *, is_sent: bool, takes_many: bool = False) -> None:
        super().__init__(request, is_sent=is_sent)
        self.was_too_large = uploads.was_too_large(request)
        if takes_many:
            self.fields["file"].widget.attrs["multiple"] = True
            self.fields["file"].label = "Files"
        workspaces: Any = self.fields["workspace"]
        workspaces.queryset = self.operated
        if len(first_two := self.operated[:2]) == 1:
            workspaces.initial = first_two[0]
        if self.was_too_large:
            self.fields["file"].error_messages["required"] = str(intake.too_large())

    def make(self) -> Document:
        file = self.cleaned_data["file"]
        self.name_sent = file.name
        return self._receive(file)

    def made_each(self) -> list[Received]:
        """Create a document from each of several files; an empty list if the form is not valid."""
        each: list[Received] = []
        for file in self.files.getlist("file") if self.is_valid() else ():
            try:
                each.append(Received(file.name or "", self._receive(file)))
            except Refused as refused:
                each.append(Received(file.name or "", refused=refused))
        return each

    def _receive(self, file: Any) -> Document:
        return intake.receive(self.cleaned_data["workspace"], file, file.name, file.content_type or "", self.actor)


class AgainForm(IntakeForm):
    """Creates another document from the bytes of an existing one, without a second upload."""

    again = forms.ModelChoiceField(Document.objects.none(), widget=forms.HiddenInput)
    name = forms.CharField(widget=forms.HiddenInput)
    field = "again"

    def __init__(self, request: HttpRequest, *, is_sent: bool) -> None:
        super().__init__(request, is_sent=is_sent)
        documents: Any = self.fields["again"]
        documents.queryset = Document.objects.kept().filter(workspace__in=self.operated).defer("text")

    def make(self) -> Document:
        return intake.store_again(self.cleaned_data["again"], self.cleaned_data["name"], self.actor)


class SearchForm(forms.Form):
    """Uses GET, so that people can link to the results."""

    q = forms.CharField(label="Search", widget=forms.TextInput(attrs={"type": "search", "maxlength": MOST_CHARACTERS}))
    workspace = forms.ModelChoiceField(Workspace.objects.none(), required=False, empty_label="all")
    by = forms.ChoiceField(
        choices=[("both", "words and meaning"), *((way, way) for way in WAYS["both"])], required=False
    )
    type = forms.ChoiceField(choices=[("", "all"), *sniffing.LABELS.items()], required=False)
    since = forms.DateField(required=False, label="Uploaded from", widget=forms.DateInput(attrs={"type": "date"}))
    until = forms.DateField(required=False, label="Uploaded to", widget=forms.DateInput(attrs={"type": "date"}))
    after = forms.IntegerField(required=False, min_value=0, max_value=MOST_IN_ALL, widget=forms.HiddenInput)

    def __init__(self, request: HttpRequest) -> None:
        super().__init__(request.GET if "q" in request.GET else None)
        workspaces: Any = self.fields["workspace"]
        self.visible = workspaces.queryset = Workspace.objects.for_user(request.user).order_by("name")

    def results(self) -> SearchResults | None:
        """Search. Return None if no query was entered or the form is invalid."""
        if not self.is_valid():
            return None
        query = self.cleaned_data
        return search(
            self.visible.filter(pk=query["workspace"].pk) if query["workspace"] else self.visible,
            query["q"],
            by=query["by"] or "both",
            content_type=query["type"] or None,
            since=_moment(query["since"], time.min),
            until=_moment(query["until"], time.max),
            limit=HITS,
            after=query["after"] or 0,
        )

    def first(self) -> int:
        """Return the number of the first hit on this page."""
        return 1 + (self.cleaned_data.get("after") or 0)

    def further(self) -> str:
        """Return the query string of the next page."""
        query = {name: self.data[name] for name in self.fields if name in self.data}
        return urlencode(query | {"after": self.first() - 1 + HITS})


def _moment(day: date | None, at: time) -> datetime | None:
    return datetime.combine(day, at, UTC) if day else None
