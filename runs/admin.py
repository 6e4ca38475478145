from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import mark_safe

from builds.admin import ConfigurationFilter
from runs import operations
from runs.forms import RunForm
from runs.lifecycle import RUN_STATES
from runs.models import Artifact, Queue, Run, RunField
from runs.queue import QUEUE_STATES
from work.operations.admin import ReadOnlyAdmin, VerbAdmin, choice_filter, related_filter, short
from workspaces.permissions import OperatedAdmin, ScopedAdmin, WorkspaceFilter, roles_of

# Most fields and artifacts that the page of a run lists.
MOST_NAMED = 20
OUTCOMES = [(word, word.replace("_", " ")) for word in Run.OUTCOMES]


@admin.register(Run)
class RunAdmin(OperatedAdmin):
    states = RUN_STATES
    list_display = ["id", "outcome", "why", "configuration", "input_document", "workspace", "created_at", "finished_at"]
    list_filter = [
        choice_filter("outcome", lambda: OUTCOMES, lambda runs, word: runs.with_outcome(word)),
        WorkspaceFilter,
        ConfigurationFilter,
    ]
    search_fields = ["input_document__name", "error_message"]
    fields = [
        *("outcome", "workspace", "configuration", "input_document", "build", "waits_for", "created_at", "started_at"),
        *("finished_at", "lease_owner", "lease_expires_at", "claim_token", "cancel_requested_at"),
        *("cancel_requested_by", "failure_type", "error_message", "found", "made", "pruned_at"),
    ]
    readonly_fields = ["outcome", "waits_for", "found", "made"]
    operations = [operations.CANCEL, operations.RUN_AGAIN]

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return roles_of(request).is_operator

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        """Replace Django's form, because a run is made by `lifecycle.submit`, with its build and its gate."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = RunForm(request)
        if run := form.made():
            self.message_user(request, f"Started run {run.pk} of {run.configuration.name}.")
            return HttpResponseRedirect(reverse("admin:runs_run_change", args=[run.pk]))
        context = self.admin_site.each_context(request)
        context |= {"title": "Run a configuration", "opts": self.opts, "form": form}
        return TemplateResponse(request, "admin/add_run.html", context)

    @admin.display(description="outcome")
    def outcome(self, run: Run) -> str:
        return run.outcome.replace("_", " ")

    @admin.display(description="why")
    def why(self, run: Run) -> str:
        """Return what a queued run waits for, or why a run failed."""
        return short(run.error_message) or self.waits_for(run)

    @admin.display(description="waiting for")
    def waits_for(self, run: Run) -> str:
        return run.get_gate_display() if run.status == Run.Status.QUEUED and run.gate else "-"

    @admin.display(description="found")
    def found(self, run: Run) -> str:
        fields = run.fields.order_by("position")[: MOST_NAMED + 1]
        page = "admin:runs_runfield_change"
        links = [(reverse(page, args=[each.pk]), f"{each.name} = {short(str(each.value))}") for each in fields]
        return _links(links, f"{reverse('admin:runs_runfield_changelist')}?run={run.pk}")

    @admin.display(description="made")
    def made(self, run: Run) -> str:
        artifacts = run.artifacts.order_by("pk")[: MOST_NAMED + 1]
        links = [(reverse("runs:download_artifact", args=[each.pk]), each.name) for each in artifacts]
        return _links(links, f"{reverse('admin:runs_artifact_changelist')}?run={run.pk}")


def _links(links: list[tuple[str, str]], everything: str) -> str:
    """Return one link per line, up to a limit, and then a link to all of them."""
    shown = format_html_join(mark_safe("<br>"), '<a href="{}">{}</a>', links[:MOST_NAMED])
    return format_html('{}<br><a href="{}">all</a>', shown, everything) if len(links) > MOST_NAMED else shown or "-"


@admin.register(Queue)
class QueueAdmin(VerbAdmin):
    states = QUEUE_STATES
    list_display = ["id", "__str__", "state", "paused_by", "paused_at", "pause_reason"]
    list_display_links = ["id", "__str__"]
    fields = ["state", "paused_by", "paused_at", "pause_reason"]
    readonly_fields = ["state"]
    operations = [operations.PAUSE_QUEUE, operations.RESUME_QUEUE]

    def has_operate_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("runs.change_queue")

    @admin.display(description="state")
    def state(self, row: Queue) -> str:
        return "paused" if row.paused_at else "active"


@admin.register(Artifact)
class ArtifactAdmin(ScopedAdmin, ReadOnlyAdmin):
    workspace_path = "run__workspace"
    list_display = ["id", "name", "run", "workspace", "content_type", "size_bytes", "created_at", "download"]
    list_filter = [WorkspaceFilter, related_filter("run")]
    search_fields = ["name"]
    fields = ["run", "workspace", "name", "content_type", "size_bytes", "sha256", "file", "download", "created_at"]
    readonly_fields = ["workspace", "download"]

    @admin.display(description="download")
    def download(self, artifact: Artifact) -> str:
        url = reverse("runs:download_artifact", args=[artifact.pk])
        return format_html('<a href="{}" aria-label="Download {}">Download</a>', url, artifact.name)


@admin.register(RunField)
class RunFieldAdmin(ScopedAdmin, ReadOnlyAdmin):
    workspace_path = "run__workspace"
    list_display = ["id", "name", "found", "confidence", "page", "run", "workspace", "step"]
    list_filter = [WorkspaceFilter, related_filter("run")]
    search_fields = ["name"]
    fields = ["run", "workspace", "position", "name", "value", "confidence", "page", "box", "step"]
    readonly_fields = ["workspace"]

    @admin.display(description="value")
    def found(self, field: RunField) -> str:
        return short(str(field.value))
