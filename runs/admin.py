from datetime import datetime
from typing import Any

from django.apps import apps
from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import mark_safe

from builds.admin import ConfigurationFilter
from documents.models import Workspace
from documents.permissions import OperatedAdmin, ScopedAdmin, WorkspaceFilter
from runs import wishes
from runs.job_runs import JOB_RUN
from runs.jobs import all_jobs, cron, ledger, why, words
from runs.jobs.history import SCHEDULED_JOB
from runs.lifecycle import RUN
from runs.models import Artifact, DueSlot, JobRun, Queue, Run, RunField, ScheduledJob
from runs.queue import QUEUE
from work import clock
from work.admin import ReadOnlyAdmin, SubjectAdmin, VerbAdmin, choice_filter, of_one, short
from work.why import Explanation

# How many fields and artifacts the page of a run lists.
MOST_NAMED = 20
# How many past and coming slots the page of a job lists.
SLOTS_SHOWN, SLOTS_COMING = 50, 3
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
        *("cancel_requested_by", "failure_type", "error_message", "found", "made", "pruned_at"),
    ]
    readonly_fields = ["outcome", "waits_for", "found", "made"]
    actions = ["cancel", "again"]
    offered = {"cancel": frozenset({"queued", "running"}), "again": frozenset(Run.Status.values)}

    @admin.action(description="Cancel", permissions=["operate"])
    def cancel(self, request: HttpRequest, runs: Any) -> HttpResponse | None:
        return self.do_each(request, "cancel", runs, wishes.cancel())

    @admin.action(description="Run again", permissions=["operate"])
    def again(self, request: HttpRequest, runs: Any) -> HttpResponse | None:
        return self.do_each(request, "again", runs, wishes.again())

    @admin.display(description="outcome")
    def outcome(self, run: Run) -> str:
        return run.outcome.replace("_", " ")

    @admin.display(description="why")
    def why(self, run: Run) -> str:
        """Return what a queued run waits for, or why a run failed."""
        return short(run.error_message) or self.waits_for(run)

    @admin.display(description="waiting for")
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
    """Return one link per line, up to a limit, and then a link to all of them."""
    shown = format_html_join(mark_safe("<br>"), '<a href="{}">{}</a>', named[:MOST_NAMED])
    return format_html('{}<br><a href="{}">all</a>', shown, everything) if len(named) > MOST_NAMED else shown or "-"


@admin.register(Queue)
class QueueAdmin(VerbAdmin):
    moves = QUEUE
    list_display = ["id", "__str__", "state", "paused_by", "paused_at", "pause_reason"]
    list_display_links = ["id", "__str__"]
    fields = ["state", "paused_by", "paused_at", "pause_reason"]
    readonly_fields = ["state"]
    actions = ["pause", "resume"]
    offered = ("pause", "resume")

    def has_operate_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("runs.change_queue")

    def is_offered(self, verb: str, row: Any) -> bool:
        return (verb == "resume") == (row.paused_at is not None)

    @admin.action(description="Pause", permissions=["operate"])
    def pause(self, request: HttpRequest, rows: Any) -> HttpResponse | None:
        return self.do_each(request, "pause", rows, wishes.pause_queue())

    @admin.action(description="Resume", permissions=["operate"])
    def resume(self, request: HttpRequest, rows: Any) -> HttpResponse | None:
        return self.do_each(request, "resume", rows, wishes.resume_queue())

    @admin.display(description="state")
    def state(self, row: Queue) -> str:
        return "paused" if row.paused_at else "active"


@admin.register(Artifact)
class ArtifactAdmin(ScopedAdmin, ReadOnlyAdmin):
    workspace_path = "run__workspace"
    list_display = ["id", "name", "run", "workspace", "content_type", "size_bytes", "created_at", "download"]
    list_filter = [WorkspaceFilter, of_one("run")]
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
    list_filter = [WorkspaceFilter, of_one("run")]
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
        *("lease_owner", "lease_expires_at", "claim_token", "failure_type", "error_message", "pruned_at"),
    ]

    @admin.display(description="error")
    def error(self, job_run: JobRun) -> str:
        return short(job_run.error_message)


@admin.register(ScheduledJob)
class ScheduledJobAdmin(VerbAdmin):
    moves = SCHEDULED_JOB
    change_form_template = "admin/scheduled_job.html"
    list_display = ["id", "name", "schedule", "state", "next_slot", "decided_until", "paused_by"]
    list_display_links = ["id", "name"]
    search_fields = ["name"]
    fields = [
        *("name", "about", "schedule", "state", "next_slot", "why", "decided_until", "paused_at", "paused_by"),
        *("retired_at", "created_at"),
    ]
    readonly_fields = ["about", "schedule", "state", "next_slot", "why"]
    actions = ["run_now", "pause", "resume"]
    offered = ("run_now", "pause", "resume")

    def has_operate_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("runs.change_scheduledjob")

    def is_offered(self, verb: str, row: Any) -> bool:
        if row.retired_at:
            return False
        return verb == "run_now" or (verb == "resume") == (row.paused_at is not None)

    @admin.action(description="Run now", permissions=["operate"])
    def run_now(self, request: HttpRequest, rows: Any) -> HttpResponse | None:
        return self.do_each(request, "run_now", rows, wishes.run_job_now())

    @admin.action(description="Pause", permissions=["operate"])
    def pause(self, request: HttpRequest, rows: Any) -> HttpResponse | None:
        return self.do_each(request, "pause", rows, wishes.pause_job())

    @admin.action(description="Resume", permissions=["operate"])
    def resume(self, request: HttpRequest, rows: Any) -> HttpResponse | None:
        return self.do_each(request, "resume", rows, wishes.resume_job())

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        if row := kwargs.get("obj"):
            context["ledger"] = ledger.latest(row, past=SLOTS_SHOWN, coming=SLOTS_COMING)
        return super().render_change_form(request, context, *args, **kwargs)

    @admin.display(description="description")
    def about(self, row: ScheduledJob) -> str:
        return next((job.about for job in all_jobs() if job.name == row.name), "") or "-"

    @admin.display(description="schedule")
    def schedule(self, row: ScheduledJob) -> str:
        return words.of_schedule(row.cron, row.time_zone)

    @admin.display(description="state")
    def state(self, row: ScheduledJob) -> str:
        if row.retired_at:
            return "retired"
        return "paused" if row.paused_at else "scheduled"

    @admin.display(description="next slot")
    def next_slot(self, row: ScheduledJob) -> datetime | None:
        return None if row.retired_at else cron.next_slot(row.cron, row.time_zone, clock.now())

    @admin.display(description="why it has not started")
    def why(self, row: ScheduledJob) -> str:
        return _in_lines(why.explain(row))


@admin.register(DueSlot)
class DueSlotAdmin(ReadOnlyAdmin):
    list_display = ["id", "job_name", "scheduled_for", "due_at", "expires_at", "asked_by", "covers"]
    search_fields = ["job_name"]
    fields = ["job_name", "scheduled_for", "due_at", "expires_at", "asked_by", "covers", "why"]
    readonly_fields = ["why"]

    @admin.display(description="why it is waiting")
    def why(self, due: DueSlot) -> str:
        return _in_lines(why.explain_due(due))


def _in_lines(explanation: Explanation) -> str:
    """Return the explanation, followed by each gate that blocks."""
    lines = [explanation.message, *(f"{gate.name}: {gate.message}" for gate in explanation.holding)]
    return format_html_join(mark_safe("<br>"), "{}", ((line,) for line in lines))


# Rows of django-q2 can call any function, so nobody may edit them by hand.
for model in apps.get_app_config("django_q").get_models():
    if admin.site.is_registered(model):
        admin.site.unregister(model)
