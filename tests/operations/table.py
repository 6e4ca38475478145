"""Every operation of people, with the rows on which it is tried and the places that offer it.

The admin offers each one; `console` is the name of a route, `api` a path after its method, `command` the words after
`manage.py`. tests/operations/test_every_operation.py fails for an operation that is missing here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from api.models import ApiToken
from api.operations import REVOKE
from builds import operations as builds
from builds.models import Build
from documents import operations as documents
from documents.models import Document
from documents.operations import DISMISS, REPROCESS
from feeds import operations as feeds
from feeds import sources
from runs import operations as runs
from runs import queue
from runs.models import Run
from schedules import history
from schedules import operations as schedules
from schedules.jobs import all_jobs
from tests.factories import (
    ApiTokenFactory,
    BuildFactory,
    ConfigurationFactory,
    DeliveryFactory,
    DocumentFactory,
    DocumentProblemFactory,
    FeedFactory,
    QueueFactory,
    RunFactory,
    SenderFactory,
    SenderLessonFactory,
    WebhookFactory,
    write,
)
from webhooks import hooks
from webhooks import operations as webhooks
from webhooks.models import Delivery
from work import boots, clock, draining
from work.operations.previews import Operation

Make = Callable[[Any], Any]


@dataclass(frozen=True)
class Entry:
    operation: Operation
    # By state: a function that makes a row of the workspace in it.
    rows: Mapping[str, Make]
    # The least that a user must be: "operator" or "admin" of the workspace, or "superuser" for what all share.
    role: str = "operator"
    console: str = ""
    api: str = ""
    command: tuple[str, ...] = ()
    # The attribute of the row by which console, API and commands name it; "" if there is a single row.
    key: str = "pk"

    def __str__(self) -> str:
        kind = type(next(iter(self.rows.values()))).__name__
        return f"{self.command[0] if self.command else kind} {self.operation.name}"


def by_status(make: Callable[..., Any], statuses: Any) -> dict[str, Make]:
    return {status: partial(make, status=status) for status in statuses}


def run(workspace: Any, status: str) -> Any:
    configuration = ConfigurationFactory(workspace=workspace)
    return RunFactory(configuration=configuration, input_document__workspace=workspace, status=status)


def purged(workspace: Any) -> Any:
    made = run(workspace, "succeeded")
    write(made.input_document, status="processed", purged_at=clock.now(), file="", text="")
    return Run.objects.get(pk=made.pk)


def problem(workspace: Any) -> Any:
    return DocumentProblemFactory(document__workspace=workspace)


def dismissed_problem(workspace: Any) -> Any:
    made = problem(workspace)
    made.dismissed_at, made.dismissed_by = clock.now(), "olga"
    made.save()
    return made


def sender(workspace: Any) -> Any:
    return SenderFactory(workspace=workspace)


def sender_off(workspace: Any) -> Any:
    return SenderFactory(workspace=workspace, switched_off_at=clock.now(), switched_off_by="olga")


def lesson(workspace: Any) -> Any:
    return SenderLessonFactory(sender=sender(workspace))


def lesson_off(workspace: Any) -> Any:
    return SenderLessonFactory(sender=sender(workspace), switched_off_at=clock.now(), switched_off_by="olga")


def feed(workspace: Any) -> Any:
    return FeedFactory()


def paused_feed(workspace: Any) -> Any:
    made: Any = FeedFactory()
    sources.pause(made, actor="olga")
    made.refresh_from_db()
    return made


def job(workspace: Any) -> Any:
    return history.introduce(next(iter(all_jobs())), actor="olga")


def paused_job(workspace: Any) -> Any:
    made = job(workspace)
    history.pause(made, actor="olga", reason="")
    made.refresh_from_db()
    return made


def open_queue(workspace: Any) -> Any:
    return QueueFactory()


def paused_queue(workspace: Any) -> Any:
    queue.pause(actor="olga", reason="")
    return QueueFactory()


def worker(workspace: Any) -> Any:
    return boots.register("w1", "boot1", {"errand": 2})


def draining_worker(workspace: Any) -> Any:
    made = worker(workspace)
    draining.drain(made, actor="olga")
    return made


def stopped_worker(workspace: Any) -> Any:
    return write(worker(workspace), stopped_at=clock.now())


def webhook(workspace: Any) -> Any:
    return WebhookFactory(workspace=workspace)


def paused_webhook(workspace: Any) -> Any:
    made = webhook(workspace)
    hooks.pause(made, actor="olga")
    made.refresh_from_db()
    return made


def delivery(workspace: Any, status: str) -> Any:
    return DeliveryFactory(webhook__workspace=workspace, status=status)


def delivery_of_removed(workspace: Any) -> Any:
    made = delivery(workspace, "failed")
    hooks.remove(made.webhook, actor="olga")
    return Delivery.objects.get(pk=made.pk)


def token(workspace: Any) -> Any:
    return ApiTokenFactory(workspace=workspace)


def revoked_token(workspace: Any) -> Any:
    made = token(workspace)
    ApiToken.objects.filter(pk=made.pk).update(revoked_at=clock.now(), revoked_by="olga")
    made.refresh_from_db()
    return made


RUNS = by_status(run, Run.Status.values)
BUILDS = by_status(
    lambda workspace, status: BuildFactory(configuration=ConfigurationFactory(workspace=workspace), status=status),
    Build.Status.values,
)
DOCUMENTS = by_status(
    lambda workspace, status: DocumentFactory(workspace=workspace, status=status), Document.Status.values
)
PROBLEMS = {"open": problem, "dismissed": dismissed_problem}
SENDERS = {"on": sender, "off": sender_off}
LESSONS = {"on": lesson, "off": lesson_off}
FEEDS = {"active": feed, "paused": paused_feed}
JOBS = {"active": job, "paused": paused_job}
QUEUES = {"active": open_queue, "paused": paused_queue}
WORKERS = {"alive": worker, "draining": draining_worker, "stopped": stopped_worker}
WEBHOOKS = {"active": webhook, "paused": paused_webhook}
DELIVERIES = {**by_status(delivery, Delivery.Status.values), "of a removed webhook": delivery_of_removed}
TOKENS = {"usable": token, "revoked": revoked_token}

TABLE = [
    Entry(runs.CANCEL, RUNS, "operator", "cancel_run", "post runs/{}/cancel", ("run", "cancel")),
    Entry(runs.RUN_AGAIN, {**RUNS, "purged": purged}, "operator", "run_again", "post runs/{}/again", ("run", "again")),
    Entry(builds.CANCEL, BUILDS, "operator", "cancel_build", "post builds/{}/cancel", ("build", "cancel")),
    Entry(builds.BUILD_AGAIN, BUILDS, "operator", "build_again", "post builds/{}/again", ("build", "again")),
    Entry(
        REPROCESS, DOCUMENTS, "operator", "reprocess_document", "post documents/{}/reprocess", ("document", "reprocess")
    ),
    Entry(DISMISS, PROBLEMS, "operator", "dismiss_problem", "post problems/{}/dismiss", ("document", "dismiss")),
    Entry(documents.SENDER_APPLY, SENDERS, "operator", "apply_sender", "post senders/{}/apply", ("sender", "apply")),
    Entry(documents.SENDER_OFF, SENDERS, "operator", "switch_off_sender", "post senders/{}/off", ("sender", "off")),
    Entry(documents.SENDER_ON, SENDERS, "operator", "switch_on_sender", "post senders/{}/on", ("sender", "on")),
    Entry(
        *(documents.SENDER_FORGET, SENDERS, "operator"),
        *("forget_sender", "post senders/{}/forget", ("sender", "forget")),
    ),
    Entry(documents.LESSON_OFF, LESSONS, "operator", "switch_off_lesson", "post lessons/{}/off", ("lesson", "off")),
    Entry(documents.LESSON_ON, LESSONS, "operator", "switch_on_lesson", "post lessons/{}/on", ("lesson", "on")),
    Entry(feeds.PAUSE, FEEDS, "superuser", "pause_feed", "post feeds/{}/pause", ("feed", "pause")),
    Entry(feeds.RESUME, FEEDS, "superuser", "resume_feed", "post feeds/{}/resume", ("feed", "resume")),
    # The command fetches the feed at once.
    Entry(feeds.CHECK_NOW, FEEDS, "superuser", "check_feed", "post feeds/{}/check"),
    Entry(schedules.RUN_NOW, JOBS, "superuser", "trigger_job", "", ("job", "trigger"), key="name"),
    Entry(schedules.PAUSE, JOBS, "superuser", "pause_job", "post jobs/{}/pause", ("job", "pause"), key="name"),
    Entry(schedules.RESUME, JOBS, "superuser", "resume_job", "post jobs/{}/resume", ("job", "resume"), key="name"),
    Entry(runs.PAUSE_QUEUE, QUEUES, "superuser", "pause_queue", "post queue/pause", ("queue", "pause"), key=""),
    Entry(runs.RESUME_QUEUE, QUEUES, "superuser", "resume_queue", "post queue/resume", ("queue", "resume"), key=""),
    Entry(draining.DRAIN, WORKERS, "superuser", "drain_worker", "post workers/{}/drain", ("worker", "drain")),
    Entry(webhooks.PAUSE, WEBHOOKS, "admin", "", "post webhooks/{}/pause", ("webhook", "pause")),
    Entry(webhooks.RESUME, WEBHOOKS, "admin", "", "post webhooks/{}/resume", ("webhook", "resume")),
    Entry(webhooks.PING, WEBHOOKS, "admin", "", "post webhooks/{}/ping", ("webhook", "ping")),
    Entry(webhooks.REMOVE, WEBHOOKS, "admin", "", "delete webhooks/{}", ("webhook", "remove")),
    Entry(webhooks.RESEND, DELIVERIES, "admin", "", "post deliveries/{}/resend", ("webhook", "resend")),
    Entry(REVOKE, TOKENS, "admin", "", "post tokens/{}/revoke", ("token", "revoke")),
]
