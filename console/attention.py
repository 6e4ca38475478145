"""The problems that the dashboard lists. Each line is a sentence with a time and a link. A problem that follows from
another listed problem has no line of its own.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.template.defaultfilters import filesizeformat
from django.urls import reverse

from builds.models import Build
from console import formatting
from console.causes import Cause, cause_of
from console.failure_groups import LEAST_RISING, TIMES
from console.situation import LONG_WAIT, MOST_FEEDS, SILENCE, Situation
from console.slots import NOT_RUN
from documents.models import DocumentProcessingJob
from runs.lifecycle import RUN_STATES
from runs.models import Run
from work.health import FEW_FREE_BYTES, FULL_BYTES, LEAST_FREE_BYTES
from work.processes import hardening
from workspaces.models import Workspace

# At most this many lines of one kind are shown; one more line counts the rest.
FEW = 3
# Failures older than this are known by now or no longer matter. Three days cover a weekend plus a day.
LATELY = timedelta(days=3)
# A run may exceed its timeout by this much, because stopping an engine takes some seconds.
GRACE = timedelta(seconds=15)
MOST_COUNTED = 1000
LONGEST = 160


@dataclass(frozen=True)
class Line:
    # `look` is the status that decides icon and colour; `word` is the shown text.
    look: str
    word: str
    message: str
    url: str
    link: str
    since: datetime | None = None
    # What happened at `since`, if the message doesn't say so.
    event: str = ""


def lines(situation: Situation) -> Sequence[Line]:
    """Return all lines, the most urgent kinds first."""
    return [line for check in CHECKS for line in check(situation)]


def workers_without_capacity(now: Situation) -> Iterator[Line]:
    alive, draining = len(now.workers.alive), len(now.workers.draining)
    url, link = reverse("console:workers"), "See the workers"
    if alive > draining:
        if now.waiting.number and not now.concurrency:
            stays = " that is not draining" if draining else ""
            counts = formatting.number(alive, "worker")
            message = f"{_queued_runs(now)}, but no worker{stays} has a thread for runs ({counts} alive)."
            yield Line("broken", "no thread", message, url, link, now.waiting.since, "The oldest was submitted")
        return
    waiting = _waiting_work(now)
    look = "broken" if waiting else "warning"
    if not alive:
        message = f"No worker is alive, and {waiting}." if waiting else "No worker is alive, so new work will wait."
        yield Line(look, "no worker", message, url, link, now.workers.gone_since, "The last one was alive")
        return
    workers = "The only worker is draining" if draining == 1 else f"All {draining} workers are draining"
    message = f"{workers}: no work is started, and {waiting or 'new work will wait'}."
    since = max(worker.drain_requested_at for worker in now.workers.draining if worker.drain_requested_at)
    yield Line(look, "draining", message, url, link, since, "Requested")


def _waiting_work(now: Situation) -> str:
    builds = sum(build.status == Build.Status.QUEUED for build in now.builds)
    pending = DocumentProcessingJob.objects.filter(status=DocumentProcessingJob.Status.PENDING)
    documents = pending.order_by()[: MOST_COUNTED + 1].count()
    many = f"over {MOST_COUNTED:,} documents" if documents > MOST_COUNTED else formatting.number(documents, "document")
    parts = [_queued_runs(now)] if now.waiting.number else []
    parts += [f"{formatting.number(builds, 'build')} {_are(builds)} waiting"] if builds else []
    parts += [f"{many} {_are(documents)} waiting to be processed"] if documents else []
    return " and ".join(parts)


def _queued_runs(now: Situation) -> str:
    return f"{now.waiting.count} {'run is' if now.waiting.number == 1 else 'runs are'} queued"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def missing_workspace(now: Situation) -> Iterator[Line]:
    if now.person.workspace_ids is None and not now.builds and not Workspace.objects.exists():
        message = "There is no workspace yet. Every document belongs to a workspace."
        yield Line("warning", "no workspace", message, reverse("console:document_add"), "Create a workspace")


def paused_queue(now: Situation) -> Iterator[Line]:
    if now.queue and now.queue.paused_at:
        reason = f": {now.queue.pause_reason}" if now.queue.pause_reason else ", without a reason"
        queued = f" {_queued_runs(now)}." if now.waiting.number else ""
        message = f"The run queue was paused by {now.queue.paused_by}{reason}.{queued}"
        yield Line("paused", "paused", message, "#queue", "Go to the queue", now.queue.paused_at, "Paused")


def low_disk_space(now: Situation) -> Iterator[Line]:
    if now.free_bytes >= FEW_FREE_BYTES:
        return
    is_full = now.free_bytes < LEAST_FREE_BYTES
    if now.free_bytes < FULL_BYTES:
        message = "The disk that holds ADE's files on this machine is full. Uploads and changes are refused."
    else:
        free = filesizeformat(now.free_bytes).replace("\xa0", " ")
        then = "Writing the next file or row may fail" if is_full else "Free some space soon"
        message = f"Only {free} is free on the disk that holds ADE's files on this machine. {then}."
    yield Line("broken" if is_full else "warning", "disk", message, reverse("console:promises"), "See all checks")


def failed_builds(now: Situation) -> Iterator[Line]:
    latest: dict[int, Build] = {}
    for build in sorted(now.builds, key=lambda build: (build.queued_at, build.pk)):
        latest[build.configuration_id] = build
    lines = []
    for build in sorted(latest.values(), key=lambda build: build.pk, reverse=True):
        ended_at = build.finished_at
        if build.status == Build.Status.FAILED and ended_at is not None and ended_at > now.now - LATELY:
            reason = _shorten(build.error_message) or build.failure_type
            message = f"The build of {build.configuration.name} failed: {reason}"
            url = reverse("console:build", args=[build.pk])
            lines.append(Line("failed", "build", message, url, "See the build", ended_at))
    yield from _few(lines, "build failed", "builds failed", reverse("console:builds"))


def long_waits(now: Situation) -> Iterator[Line]:
    long, oldest = now.waiting.long, now.waiting.oldest
    if not long or now.is_paused or not now.concurrency:
        return
    have = "has" if long == 1 else "have"
    message = f"{formatting.number(long, 'run')} {have} been waiting for over {_length(LONG_WAIT)}."
    url = reverse("console:run", args=[oldest]) if oldest else _runs_url(Run.Status.QUEUED)
    link = "See why the oldest is waiting" if oldest else "See the queued runs"
    yield Line("waiting", "waiting", message, url, link, now.waiting.since, "The oldest was submitted")


def exceeded_time_limits(now: Situation) -> Iterator[Line]:
    limit, lines = timedelta(seconds=settings.ADE_RUN_TIMEOUT_SECONDS), []
    for run in now.running:
        if run.started_at and run.started_at < now.now - limit - GRACE and now.person.sees(run):
            name, length = f"Run {run.pk} of {run.configuration.name}", _length(now.now - run.started_at)
            message = f"{name} has been running for {length}; its time limit is {_length(limit)}."
            lines.append(Line("overdue", "over time", message, reverse("console:run", args=[run.pk]), "See the run"))
    one, many = "run has exceeded its time limit", "runs have exceeded their time limit"
    yield from _few(lines, one, many, _runs_url(Run.Status.RUNNING))
    limit = timedelta(seconds=settings.ADE_BUILD_TIMEOUT)
    for build in now.builds:
        is_building = build.status == Build.Status.BUILDING
        if is_building and build.started_at and build.started_at < now.now - limit - GRACE:
            message = f"The build of {build.configuration.name} has exceeded its time limit of {_length(limit)}."
            url = reverse("console:build", args=[build.pk])
            yield Line("overdue", "over time", message, url, "See the build", build.started_at, "It started")


def failed_jobs(now: Situation) -> Iterator[Line]:
    for job in now.job_slots:
        if not job.failures or (job.row and job.row.paused_at):
            continue
        counts = Counter(state for _, state in job.failures)
        last, state = job.failures[-1]
        states = " and ".join(f"{number} {formatting.plain(each)}" for each, number in counts.items())
        error = f" “{_shorten(job.errors[last])}”" if last in job.errors else ""
        number = "1 slot" if len(job.failures) == 1 else f"{len(job.failures)} slots"
        message = (
            f"{job.job.name}: {number} went wrong in the last day ({states}), the last at {last:%H:%M} UTC.{error}"
        )
        yield Line("missed" if state in NOT_RUN else "failed", "job", message, job.url, "See the job")


def rising_failures(now: Situation) -> Iterator[Line]:
    """Yield causes that led to more failures per hour in the last hour than in the hours before."""
    recent_since = now.failed.recent_since
    newer, older = now.failed.until - recent_since, recent_since - now.failed.since
    by_key: dict[str, tuple[Cause, Counter[bool]]] = {}
    for run in now.failed.runs:
        cause = cause_of(RUN_STATES.kind, run.failure_type, run.message)
        by_key.setdefault(cause.key, (cause, Counter()))[1][run.finished_at >= recent_since] += 1
    usual = TIMES * (newer / older) if older else 0.0
    rising = [each for each in by_key.values() if each[1][True] >= max(LEAST_RISING, usual * each[1][False])]
    lines = []
    for cause, counts in sorted(rising, key=lambda each: -each[1][True]):
        before = f" ({counts[False]:,} in the {_length(older)} before)" if older else ""
        runs = formatting.number(counts[True], "run")
        name = _shorten(cause.words) or cause.key
        message = f"{name}: {runs} failed this way in the last {_length(newer)}{before}."
        url = reverse("console:failure", args=[cause.key])
        lines.append(Line("rising", "rising", message, url, "See these failures"))
    one, many = "cause has become more frequent", "causes have become more frequent"
    yield from _few(lines, one, many, reverse("console:failures"))


def silent_feeds(now: Situation) -> Iterator[Line]:
    feeds, length = now.silent_feeds, _length(SILENCE)
    if len(feeds) > FEW:
        many = f"Over {MOST_FEEDS}" if len(feeds) > MOST_FEEDS else str(len(feeds))
        message = f"{many} feeds have not answered for over {length}."
        yield Line("warning", "feeds", message, reverse("console:feeds"), "See the feeds")
        return
    for feed in feeds:
        message = f"The feed {_shorten(str(feed))} has not answered for over {length}: {_shorten(feed.last_error)}"
        since, event = feed.succeeded_at or feed.created_at, "It last answered" if feed.succeeded_at else "It was added"
        yield Line("warning", "feed", message, reverse("console:feed", args=[feed.pk]), "See the feed", since, event)


def weak_hardening(now: Situation) -> Iterator[Line]:
    for weakness, message in hardening.SAID.items():
        workers = [worker for worker in now.workers.alive if weakness in worker.weaknesses]
        if workers:
            one = f"{workers[0].name} on {workers[0].host}"
            names = one if len(workers) == 1 else formatting.number(len(workers), "worker")
            look, word = ("broken", "no sandbox") if weakness == hardening.NO_SANDBOX else ("warning", "root")
            message = f"{message} {hardening.ADVICE[weakness]} Affected: {names}."
            yield Line(look, word, message, reverse("console:workers"), "See the workers")


CHECKS: tuple[Callable[[Situation], Iterator[Line]], ...] = (
    workers_without_capacity,
    missing_workspace,
    paused_queue,
    low_disk_space,
    failed_builds,
    failed_jobs,
    rising_failures,
    exceeded_time_limits,
    long_waits,
    silent_feeds,
    weak_hardening,
)


def _runs_url(outcome: str) -> str:
    return f"{reverse('console:runs')}?outcome={outcome}"


def _few(lines: Sequence[Line], one: str, many: str, url: str) -> Iterator[Line]:
    """Yield the first lines, and one line that counts the rest."""
    yield from lines[:FEW]
    if len(lines) > FEW:
        more = len(lines) - FEW
        yield Line(lines[0].look, lines[0].word, f"{more} more {one if more == 1 else many}.", url, "See all")


def _length(length: timedelta) -> str:
    return formatting.length(length.total_seconds())


def _shorten(text: str) -> str:
    """Return the first non-empty line of the text, shortened to fit into a sentence."""
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return first if len(first) <= LONGEST else f"{first[: LONGEST - 1]}…"
