from datetime import datetime
from typing import Any

from django.apps import apps
from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html_join
from django.utils.safestring import mark_safe

from schedules import cron, formatting, ledger, operations, why
from schedules.history import SCHEDULED_JOB_STATES
from schedules.job_runs import JOB_RUN_STATES
from schedules.jobs import all_jobs
from schedules.models import DueSlot, JobRun, ScheduledJob
from work import clock
from work.operations.admin import ReadOnlyAdmin, SubjectAdmin, VerbAdmin, choice_filter, short
from work.why import Explanation

# The number of past and of future slots that the page of a job lists.
SLOTS_SHOWN, SLOTS_COMING = 50, 3


@admin.register(JobRun)
class JobRunAdmin(SubjectAdmin):
    states = JOB_RUN_STATES
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
    states = SCHEDULED_JOB_STATES
    change_form_template = "admin/scheduled_job.html"
    list_display = ["id", "name", "schedule", "state", "next_slot", "decided_until", "paused_by"]
    list_display_links = ["id", "name"]
    search_fields = ["name"]
    fields = [
        *("name", "about", "schedule", "state", "next_slot", "why", "decided_until", "paused_at", "paused_by"),
        *("retired_at", "created_at"),
    ]
    readonly_fields = ["about", "schedule", "state", "next_slot", "why"]
    operations = [operations.RUN_NOW, operations.PAUSE, operations.RESUME]

    def has_operate_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("schedules.change_scheduledjob")

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        if row := kwargs.get("obj"):
            context["ledger"] = ledger.latest(row, past=SLOTS_SHOWN, coming=SLOTS_COMING)
        return super().render_change_form(request, context, *args, **kwargs)

    @admin.display(description="description")
    def about(self, row: ScheduledJob) -> str:
        return next((job.about for job in all_jobs() if job.name == row.name), "") or "-"

    @admin.display(description="schedule")
    def schedule(self, row: ScheduledJob) -> str:
        return formatting.of_schedule(row.cron, row.time_zone)

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


# Rows of django-q2 can call any function, so the admin does not offer them for editing.
for model in apps.get_app_config("django_q").get_models():
    if admin.site.is_registered(model):
        admin.site.unregister(model)
