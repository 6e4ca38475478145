from typing import Any

from runs.models import JobRun
from work.commands import AddVerb, Answer, NounCommand, add_limit, table

COLUMNS = (
    "id",
    "job_name",
    "scheduled_for",
    "status",
    "started_at",
    "finished_at",
    "worker_instance",
    "rows_processed",
    "error_message",
)


class Command(NounCommand):
    help = "Scheduled jobs and their runs."

    def add_verbs(self, add: AddVerb) -> None:
        listing = add("list", self.list_job_runs, "List job runs, the newest first.")
        listing.add_argument("--status", choices=JobRun.Status.values)
        listing.add_argument("--job", metavar="NAME")
        add_limit(listing)

    def list_job_runs(self, *, status: str | None, job: str | None, limit: int, before: int | None, **_: Any) -> Answer:
        found = JobRun.objects.order_by("-id")
        found = found.filter(status=status) if status else found
        found = found.filter(job_name=job) if job else found
        found = found.filter(pk__lt=before) if before else found
        rows = list(found.values(*COLUMNS)[:limit])
        shown = ("id", "job_name", "scheduled_for", "status", "finished_at", "rows_processed", "error_message")
        return Answer({"job_runs": rows}, table(rows, *shown))
