from typing import Any

from django import forms
from django.http import HttpRequest

from builds.models import Configuration
from documents.models import Document
from runs import lifecycle
from runs.lifecycle import DocumentFailed, OtherWorkspace, Purged, QueueFull
from runs.models import Run
from workspaces.models import Workspace


class RunForm(forms.Form):
    """Runs a configuration over a document, or shows why that was refused."""

    configuration = forms.ModelChoiceField(Configuration.objects.none())
    document = forms.ModelChoiceField(
        Document.objects.none(),
        widget=forms.NumberInput(attrs={"min": 1}),
        help_text="The ID of a document in the workspace of the configuration.",
        error_messages={"invalid_choice": "There is no such document, or you do not operate its workspace."},
    )
    at_once = forms.BooleanField(
        required=False,
        label="Do not wait",
        help_text="Start before the document is processed. Its text, fields and tables may be missing.",
    )

    def __init__(self, request: HttpRequest) -> None:
        # A link to the form may name the document.
        initial = {name: request.GET[name] for name in ("configuration", "document") if name in request.GET}
        super().__init__(request.POST if request.method == "POST" else None, initial=initial)
        operated = Workspace.objects.operated_by(request.user)
        configurations: Any = self.fields["configuration"]
        configurations.queryset = Configuration.objects.listed().filter(workspace__in=operated).order_by("name", "pk")
        configurations.label_from_instance = lambda row: f"{row.name} ({row.workspace.name})"
        documents: Any = self.fields["document"]
        documents.queryset = Document.objects.filter(workspace__in=operated).defer("text", "embedding")
        self.actor = request.user.get_username()

    def made(self) -> Run | None:
        if not self.is_valid():
            return None
        configuration, document = self.cleaned_data["configuration"], self.cleaned_data["document"]
        waits = not self.cleaned_data["at_once"]
        try:
            return lifecycle.submit(configuration, document, actor=self.actor, wait_for_processing=waits)
        except (DocumentFailed, OtherWorkspace, Purged, QueueFull) as error:
            self.add_error("document", str(error))
        return None
