"""Lists what needs attention on the dashboard: each line is a sentence with its time and a link. A problem that
follows from another one is not listed again.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
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
from console.slots import NOT_RUN, Turns
from documents.models import DocumentProcessingJob
from runs.lifecycle import RUN_STATES
from runs.models import Run
from schedules.ledger import State
from work.health import FEW_FREE_BYTES, FULL_BYTES, LEAST_FREE_BYTES
from work.processes import hardening
from workspaces.models import Workspace

# Lines of one kind; the rest is only counted.
FEW = 3
# Older failures are known by now or no longer matter. This covers a weekend plus a day.
LATELY = timedelta(days=3)
# After its timeout, an engine is stopped within seconds.
GRACE = timedelta(seconds=15)
MOST_COUNTED = 1000
LONGEST = 160


@dataclass(frozen=True)
class Line:
    # The status that decides the look, and the word that is shown.
    like: str
    word: str
    said: str
    url: str
    # The text of the link.
    link: str
    since: datetime | None = None
    # What happened at `since`, if the sentence doesn't say it.
    then: str = ""


def lines(situation: Situation) -> Sequence[Line]:
    """Return all lines, the most urgent kinds first."""
    return [line for find in _LOOKED_FOR for line in find(situation)]


def _workers(now: Situation) -> Iterator[Line]:
    url, link = reverse("console:workers"), "See the workers"
    if not now.crew.alive:
        waiting = _what_waits(now)
        said = f"No worker is alive, and {waiting}." if waiting else "No worker is alive, so new work will wait."
        like = "broken" if waiting else "warning"
        yield Line(like, "no worker", said, url, link, now.crew.gone_since, "The last one was alive")
    elif len(now.crew.draining) == len(now.crew.alive):
        yield _all_drain(now, url, link)
    elif now.waiting.number and not now.slots:
        alive = formatting.number(len(now.crew.alive), "worker")
        stays = " that is not draining" if now.crew.draining else ""
        said = f"{_are_queued(now)}, but no worker{stays} has a thread for runs ({alive} alive)."
        yield Line("broken", "no thread", said, url, link, now.waiting.since, "The oldest was submitted")


def _all_drain(now: Situation, url: str, link: str) -> Line:
    number, waiting = len(now.crew.draining), _what_waits(now)
    those = "The only worker is draining" if number == 1 else f"All {number} workers are draining"
    then = f"and {waiting}" if waiting else "and new work will wait"
    since = max(worker.drain_requested_at for worker in now.crew.draining if worker.drain_requested_at)
    like = "broken" if waiting else "warning"
    return Line(like, "draining", f"{those}: no work is started, {then}.", url, link, since, "Requested")


def _what_waits(now: Situation) -> str:
    builds = sum(build.status == "queued" for build in now.builds)
    documents = DocumentProcessingJob.objects.filter(status="PENDING").order_by()[: MOST_COUNTED + 1].count()
    many = f"over {MOST_COUNTED:,} documents" if documents > MOST_COUNTED else formatting.number(documents, "document")
    parts = [_are_queued(now)] if now.waiting.number else []
    parts += [f"{formatting.number(builds, 'build')} {_are(builds)} waiting"] if builds else []
    parts += [f"{many} {_are(documents)} waiting to be processed"] if documents else []
    return " and ".join(parts)


def _are_queued(now: Situation) -> str:
    return f"{now.waiting.said} {'run is' if now.waiting.number == 1 else 'runs are'} queued"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _no_workspace(now: Situation) -> Iterator[Line]:
    if now.person.theirs is None and not now.builds and not Workspace.objects.exists():
        said = "There is no workspace yet. Every document belongs to a workspace."
        yield Line("warning", "no workspace", said, reverse("console:document_add"), "Create a workspace")


def _pause(now: Situation) -> Iterator[Line]:
    if now.queue and now.queue.paused_at:
        reason = f": {now.queue.pause_reason}" if now.queue.pause_reason else ", without a reason"
        held = f" {_are_queued(now)}." if now.waiting.number else ""
        said = f"The run queue was paused by {now.queue.paused_by}{reason}.{held}"
        yield Line("paused", "paused", said, "#queue", "Go to the queue", now.queue.paused_at, "Paused")


def _disk(now: Situation) -> Iterator[Line]:
    if now.free_bytes >= FEW_FREE_BYTES:
        return
    left = filesizeformat(now.free_bytes).replace("\xa0", " ")
    is_full = now.free_bytes < LEAST_FREE_BYTES
    then = "Writing the next file or row may fail" if is_full else "Free some space soon"
    if now.free_bytes < FULL_BYTES:
        said = "The disk that holds ADE's files on this machine is full. Uploads and changes are refused."
        yield Line("broken", "disk", said, reverse("console:promises"), "See all checks")
        return
    said = f"Only {left} is free on the disk that holds ADE's files on this machine. {then}."
    yield Line("broken" if is_full else "warning", "disk", said, reverse("console:promises"), "See all checks")


def _builds(now: Situation) -> Iterator[Line]:
    newest: dict[int, Build] = {}
    for build in sorted(now.builds, key=lambda build: (build.queued_at, build.pk)):
        newest[build.configuration_id] = build
    failed = [each for each in newest.values() if each.status == "failed" and _is_of_late(now, each.finished_at)]
    failed.sort(key=lambda build: build.pk, reverse=True)
    yield from _few(map(_of_build, failed), "build failed", "builds failed", reverse("console:builds"))


def _is_of_late(now: Situation, moment: datetime | None) -> bool:
    return moment is not None and moment > now.now - LATELY


def _of_build(build: Build) -> Line:
    why = _cut(build.error_message) or build.failure_type
    said = f"The build of {build.configuration.name} failed: {why}"
    return Line("failed", "build", said, reverse("console:build", args=[build.pk]), "See the build", build.finished_at)


def _waits(now: Situation) -> Iterator[Line]:
    if not now.waiting.long or now.is_paused or not now.slots:
        return
    long = now.waiting.long
    have = "has" if long == 1 else "have"
    said = f"{formatting.number(long, 'run')} {have} been waiting for over {_minutes(LONG_WAIT)}."
    oldest = now.waiting.oldest
    url = reverse("console:run", args=[oldest]) if oldest else _listed("queued")
    link = "See why the oldest is waiting" if oldest else "See the queued runs"
    yield Line("waiting", "waiting", said, url, link, now.waiting.since, "The oldest was submitted")


def _over_time(now: Situation) -> Iterator[Line]:
    most = timedelta(seconds=settings.ADE_RUN_TIMEOUT_SECONDS)
    late = [each for each in now.running if each.started_at and each.started_at < now.now - most - GRACE]
    mine = (_of_late_run(run, now, most) for run in late if now.person.sees(run))
    yield from _few(mine, "run has exceeded its time limit", "runs have exceeded their time limit", _listed("running"))
    most = timedelta(seconds=settings.ADE_BUILD_TIMEOUT)
    for build in now.builds:
        if build.status == "building" and build.started_at and build.started_at < now.now - most - GRACE:
            said = f"The build of {build.configuration.name} has exceeded its time limit of {_minutes(most)}."
            url = reverse("console:build", args=[build.pk])
            yield Line("overdue", "over time", said, url, "See the build", build.started_at, "It started")


def _of_late_run(run: Run, now: Situation, most: timedelta) -> Line:
    assert run.started_at
    length = formatting.length((now.now - run.started_at).total_seconds())
    said = (
        f"Run {run.pk} of {run.configuration.name} has been running for {length}; its time limit is {_minutes(most)}."
    )
    url = reverse("console:run", args=[run.pk])
    return Line("overdue", "over time", said, url, "See the run")


def _jobs(now: Situation) -> Iterator[Line]:
    for turns in now.turns:
        if turns.wrong and not (turns.row and turns.row.paused_at):
            yield _of_job(turns)


def _of_job(turns: Turns) -> Line:
    wrong = Counter(state for _, state in turns.wrong)
    last, state = turns.wrong[-1]
    counted = " and ".join(f"{number} {_state(each)}" for each, number in wrong.items())
    error = f" “{_cut(turns.errors[last])}”" if last in turns.errors else ""
    number = "1 slot" if len(turns.wrong) == 1 else f"{len(turns.wrong)} slots"
    said = f"{turns.job.name}: {number} went wrong in the last day ({counted}), the last at {last:%H:%M} UTC.{error}"
    like = "missed" if state in NOT_RUN else "failed"
    return Line(like, "job", said, turns.url, "See the job")


def _state(state: State) -> str:
    return formatting.plain(state)


def _families(now: Situation) -> Iterator[Line]:
    """Yield causes of failures that have become more frequent in the last hour, compared with the hours before."""
    turn = now.failed.turn
    newer, older = now.failed.until - turn, turn - now.failed.since
    found: dict[str, tuple[Cause, Counter[bool]]] = {}
    for run in now.failed.runs:
        cause = cause_of(RUN_STATES.kind, run.failure_type, run.said)
        found.setdefault(cause.key, (cause, Counter()))[1][run.finished_at >= turn] += 1
    usual = TIMES * (newer / older) if older else 0.0
    rising = [each for each in found.values() if each[1][True] >= max(LEAST_RISING, usual * each[1][False])]
    rising.sort(key=lambda each: -each[1][True])
    lines = (_of_family(cause, counts, newer, older) for cause, counts in rising)
    yield from _few(
        lines, "cause has become more frequent", "causes have become more frequent", reverse("console:failures")
    )


def _of_family(cause: Cause, counts: "Counter[bool]", newer: timedelta, older: timedelta) -> Line:
    times = f"in the last {_minutes(newer)}"
    if older:
        times += f" ({counts[False]:,} in the {_minutes(older)} before)"
    said = f"{_cut(cause.words) or cause.key}: {formatting.number(counts[True], 'run')} failed this way {times}."
    return Line("rising", "rising", said, reverse("console:failure", args=[cause.key]), "See these failures")


def _feeds(now: Situation) -> Iterator[Line]:
    found = list(now.silent_feeds)
    long = formatting.length(SILENCE.total_seconds())
    if len(found) > FEW:
        many = f"Over {MOST_FEEDS}" if len(found) > MOST_FEEDS else str(len(found))
        said = f"{many} feeds have not answered for over {long}."
        yield Line("warning", "feeds", said, reverse("console:feeds"), "See the feeds")
        return
    for feed in found:
        said = f"The feed {_cut(str(feed))} has not answered for over {long}: {_cut(feed.last_error)}"
        since, then = feed.succeeded_at or feed.created_at, "It last answered" if feed.succeeded_at else "It was added"
        yield Line("warning", "feed", said, reverse("console:feed", args=[feed.pk]), "See the feed", since, then)


def _listed(outcome: str) -> str:
    return f"{reverse('console:runs')}?outcome={outcome}"


def _few(found: Iterable[Line], one: str, many: str, url: str) -> Iterator[Line]:
    """Yield the first lines, and one line that counts the rest."""
    rows = list(found)
    yield from rows[:FEW]
    if more := len(rows) - FEW if len(rows) > FEW else 0:
        yield Line(rows[0].like, rows[0].word, f"{more} more {one if more == 1 else many}.", url, "See all")


def _minutes(length: timedelta) -> str:
    return formatting.length(length.total_seconds())


def _cut(text: str) -> str:
    """Return the first line of the text, shortened to fit into a sentence."""
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return first if len(first) <= LONGEST else f"{first[: LONGEST - 1]}…"


def _weaknesses(now: Situation) -> Iterator[Line]:
    for weakness, said in hardening.SAID.items():
        those = [worker for worker in now.crew.alive if weakness in worker.weaknesses]
        if those:
            who = f"{those[0].name} on {those[0].host}" if len(those) == 1 else formatting.number(len(those), "worker")
            like, word = ("broken", "no sandbox") if weakness == hardening.NO_SANDBOX else ("warning", "root")
            sentence = f"{said} {hardening.ADVICE[weakness]} Affected: {who}."
            yield Line(like, word, sentence, reverse("console:workers"), "See the workers")


_LOOKED_FOR: tuple[Callable[[Situation], Iterator[Line]], ...] = (
    _workers,
    _no_workspace,
    _pause,
    _disk,
    _builds,
    _jobs,
    _families,
    _over_time,
    _waits,
    _feeds,
    _weaknesses,
)
