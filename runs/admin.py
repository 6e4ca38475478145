import re
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import mark_safe

from builds.admin import ConfigurationFilter
from documents.models import Workspace
from documents.scoped import OperatedAdmin, ScopedAdmin, WorkspaceFilter
from runs import lifecycle
from runs.job_runs import JOB_RUN
from runs.lifecycle import RUN, Purged, QueueFull
from runs.models import Artifact, JobRun, Run, RunField
from work.admin import ReadOnlyAdmin, SubjectAdmin, choice_filter, short
from work.outcomes import Outcome, of_cancel

# Of the new runs, so many are named; and of what a run has found and made, on its page.
MOST_NAMED = 20
OUTCOMES = [(word, word.replace("_", " ")) for word in Run.OUTCOMES]


@admin.register(Run)
class RunAdmin(OperatedAdmin):
    moves = RUN
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
        *("cancel_requested_by", "failure_type", "error_message", "found", "made"),
    ]
    readonly_fields = ["outcome", "waits_for", "found", "made"]
    actions = ["cancel", "again"]
    offered = {"cancel": frozenset({"queued", "running"}), "again": frozenset(Run.Status.values)}

    @admin.action(description="Cancel", permissions=["operate"])
    def cancel(self, request: HttpRequest, runs: Any) -> None:
        def cancel(run: Run, actor: str) -> Outcome:
            return of_cancel(RUN, run.status, lifecycle.cancel(run, actor=actor))

        self.do_each(request, runs, cancel)

    @admin.action(description="Run again", permissions=["operate"])
    def again(self, request: HttpRequest, runs: Any) -> None:
        made: list[Run] = []

        def again(run: Run, actor: str) -> Outcome:
            try:
                made.append(lifecycle.run_again(run, actor=actor))
            except QueueFull:
                return Outcome.NO_PLACE
            except Purged:
                return Outcome.PURGED
            return Outcome.MADE

        self.do_each(request, runs, again)
        if made:
            links = ((reverse("admin:runs_run_change", args=[run.pk]), run) for run in made[:MOST_NAMED])
            named = format_html_join(", ", '<a href="{}">{}</a>', links)
            more = f" and {len(made) - MOST_NAMED} more" if len(made) > MOST_NAMED else ""
            self.message_user(request, format_html("New: {}{}.", named, more))

    @admin.display(description="outcome")
    def outcome(self, run: Run) -> str:
        return run.outcome.replace("_", " ")

    @admin.display(description="why")
    def why(self, run: Run) -> str:
        """What it waits for, or what it has failed of."""
        return short(run.error_message) or self.waits_for(run)

    @admin.display(description="waits for")
    def waits_for(self, run: Run) -> str:
        return run.get_gate_display() if run.status == "queued" and run.gate else "-"

    @admin.display(description="found")
    def found(self, run: Run) -> str:
        fields = run.fields.order_by("position")[: MOST_NAMED + 1]
        named = ((_page_of(field), f"{field.name} = {short(str(field.value))}") for field in fields)
        return _listed(list(named), f"{reverse('admin:runs_runfield_changelist')}?run={run.pk}")

    @admin.display(description="made")
    def made(self, run: Run) -> str:
        artifacts = run.artifacts.order_by("pk")[: MOST_NAMED + 1]
        named = ((reverse("runs:download_artifact", args=[each.pk]), each.name) for each in artifacts)
        return _listed(list(named), f"{reverse('admin:runs_artifact_changelist')}?run={run.pk}")


def _page_of(field: RunField) -> str:
    return reverse("admin:runs_runfield_change", args=[field.pk])


def _listed(named: list[tuple[str, str]], everything: str) -> str:
    """Links, one in each line; of many the first, and where all are."""
    shown = format_html_join(mark_safe("<br>"), '<a href="{}">{}</a>', named[:MOST_NAMED])
    return format_html('{}<br><a href="{}">all</a>', shown, everything) if len(named) > MOST_NAMED else shown or "-"


class OfOneRun(admin.SimpleListFilter):
    """Not offered; the page of a run leads here."""

    title = parameter_name = "run"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        asked = request.GET.get("run", "")
        return [(asked, f"run {asked}")] if re.fullmatch("[0-9]{1,18}", asked) else []

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        asked = self.value()
        return queryset.filter(run_id=asked) if asked in dict(self.lookup_choices) else queryset


@admin.register(Artifact)
class ArtifactAdmin(ScopedAdmin, ReadOnlyAdmin):
    workspace_path = "run__workspace"
    list_display = ["id", "name", "run", "workspace", "content_type", "size_bytes", "created_at", "download"]
    list_filter = [WorkspaceFilter, OfOneRun]
    search_fields = ["name"]
    fields = ["run", "workspace", "name", "content_type", "size_bytes", "sha256", "file", "download", "created_at"]
    readonly_fields = ["workspace", "download"]

    @admin.display(description="download")
    def download(self, artifact: Artifact) -> str:
        url = reverse("runs:download_artifact", args=[artifact.pk])
        return format_html('<a href="{}" aria-label="Download {}">Download</a>', url, artifact.name)

    @admin.display(description="workspace")
    def workspace(self, artifact: Artifact) -> Workspace:
        return artifact.run.workspace


@admin.register(RunField)
class RunFieldAdmin(ScopedAdmin, ReadOnlyAdmin):
    workspace_path = "run__workspace"
    list_display = ["id", "name", "found", "confidence", "page", "run", "workspace", "step"]
    list_filter = [WorkspaceFilter, OfOneRun]
    search_fields = ["name"]
    fields = ["run", "workspace", "position", "name", "value", "confidence", "page", "box", "step"]
    readonly_fields = ["workspace"]

    @admin.display(description="value")
    def found(self, field: RunField) -> str:
        return short(str(field.value))

    @admin.display(description="workspace")
    def workspace(self, field: RunField) -> Workspace:
        return field.run.workspace


@admin.register(JobRun)
class JobRunAdmin(SubjectAdmin):
    moves = JOB_RUN
    list_display = [
        *("id", "job_name", "scheduled_for", "status", "started_at", "finished_at", "worker_instance"),
        *("rows_processed", "error"),
    ]
    list_filter = [choice_filter("status", lambda: JobRun.Status.choices)]
    search_fields = ["job_name", "error_message"]
    fields = [
        *("job_name", "scheduled_for", "status", "worker_instance", "rows_processed", "started_at", "finished_at"),
        *("lease_owner", "lease_expires_at", "claim_token", "failure_type", "error_message"),
    ]

    @admin.display(description="error")
    def error(self, job_run: JobRun) -> str:
        return short(job_run.error_message)
