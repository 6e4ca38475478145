"""Estimates when a queued run will start, from its position, the duration of similar runs and the live workers'
threads.

The forecast also says what the estimate is based on, or why there is none.
"""

import heapq
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median

from django.db.models import Q

from runs import why
from runs.lifecycle import RUN_STATES
from runs.models import BACKWARDS, IN_TURN, OUTCOME, Run, RunQuerySet
from work import clock
from work.why import MOST_COUNTED, Explanation, LiveWorkers

# The duration is predicted from the last RECENT successful runs of the configuration. If it has none, successful runs
# of any configuration are used, down to AMONG ids before this run.
RECENT, AMONG = 50, 10_000
REASONS = {
    "paused": "the run queue is paused",
    "worker": "no live worker takes runs",
    "draining": "all workers that take runs are draining",
    "build": "its build is not ready",
    "processing": "its document is not processed",
}


@dataclass(frozen=True)
class Forecast:
    status: str
    # None if the run is not queued, or if more runs are ahead of it than are counted.
    position: int | None
    position_in_words: str
    estimated_start: datetime | None
    based_on: str


def of(run: Run) -> Forecast:
    return of_explained(run, why.explain(run))


def of_explained(run: Run, explanation: Explanation) -> Forecast:
    """Like `of`, for a caller that already has the explanation."""
    gates = {gate.name: gate for gate in explanation.gates}
    if not gates:
        return Forecast(explanation.status, None, "not in the queue", None, explanation.message)
    # The documents of older runs that wait neither for their build nor for processing, oldest first. Runs that wait
    # for another run of their document are included, because they also take a thread before this run.
    in_turn = Run.objects.filter(status=Run.Status.QUEUED, gate__in=IN_TURN)
    # The first condition is redundant, but lets the index exclude all later runs.
    older = in_turn.filter(created_at__lte=run.created_at).filter(Q(created_at__lt=run.created_at) | Q(pk__lt=run.pk))
    documents = older.order_by("created_at", "id").values_list("input_document_id", flat=True)
    ahead = list(documents[: MOST_COUNTED + 1])
    if len(ahead) > MOST_COUNTED:
        position, words = None, f"over {MOST_COUNTED:,}"
    else:
        position, words = len(ahead) + 1, str(len(ahead) + 1)
    for name in ("paused", "worker", "build", "processing"):
        if gates[name].holds:
            reason = REASONS["draining" if gates[name].data.get("draining") else name]
            return Forecast(explanation.status, position, words, None, f"No estimate: {reason}.")
    if position is None:
        message = f"No estimate: over {MOST_COUNTED:,} runs are ahead of it."
        return Forecast(explanation.status, None, words, None, message)
    start, basis = _estimate(run, ahead)
    return Forecast(explanation.status, position, words, start, basis)


def _estimate(run: Run, ahead: Sequence[int]) -> tuple[datetime | None, str]:
    """Return when the run will start, and the basis of the estimate or the reason why there is none."""
    successes = Run.objects.annotate(now=OUTCOME, backwards=BACKWARDS).filter(now="succeeded").order_by("backwards")
    seconds, whose = _seconds(successes.filter(configuration_id=run.configuration_id)), "of its configuration"
    if not seconds:
        among = Run.objects.filter(pk__gt=run.pk - AMONG, status=Run.Status.SUCCEEDED).order_by("-pk")
        seconds, whose = _seconds(among), "of any configuration"
    if not seconds:
        return None, "No estimate: no run has succeeded yet."
    each, now = median(seconds), clock.now()
    threads = LiveWorkers.now().slots(RUN_STATES.kind)
    busy: dict[int, float] = {}
    free_in = []
    running = Run.objects.filter(status=Run.Status.RUNNING).values_list(
        "lease_owner", "input_document_id", "started_at"
    )
    for owner, document, started_at in running:
        busy[document] = max(0.0, each - (now - started_at).total_seconds()) if started_at else each
        if owner in threads:
            free_in.append(busy[document])
    free_in = (sorted(free_in) + [0.0] * max(0, threads.total() - len(free_in)))[: threads.total()]
    if not free_in:
        return None, f"No estimate: {REASONS['worker']}."
    wait = _until_turn(free_in, [*ahead, run.input_document_id], busy, each)
    basis = (
        f"runs ahead of it: {len(ahead)}; threads of live workers: {threads.total()}; {each:.1f} s per run"
        f" (median of the last {len(seconds)} successful runs {whose})"
    )
    return now + timedelta(seconds=wait), basis


def _until_turn(free_in: list[float], documents: Sequence[int], busy: Mapping[int, float], each: float) -> float:
    """Return in how many seconds the last of these runs starts. `documents` has the document of each run, in queue
    order.

    Whenever a thread becomes free, it takes the oldest run that can start. A document has at most one running run.
    """
    lines: dict[int, deque[int]] = {}
    for place, document in enumerate(documents):
        lines.setdefault(document, deque()).append(place)
    ready = [(line[0], document) for document, line in lines.items() if document not in busy]
    later = [(left, document) for document, left in busy.items() if document in lines]
    heapq.heapify(free_in)
    heapq.heapify(ready)
    heapq.heapify(later)
    while True:
        moment = heapq.heappop(free_in) if ready else max(heapq.heappop(free_in), later[0][0])
        while later and later[0][0] <= moment:
            _, document = heapq.heappop(later)
            heapq.heappush(ready, (lines[document][0], document))
        place, document = heapq.heappop(ready)
        if place == len(documents) - 1:
            return moment
        lines[document].popleft()
        heapq.heappush(free_in, moment + each)
        if lines[document]:
            heapq.heappush(later, (moment + each, document))


def _seconds(runs: RunQuerySet) -> list[float]:
    times = runs.values_list("started_at", "finished_at")[:RECENT]
    return [
        (finished_at - started_at).total_seconds() for started_at, finished_at in times if started_at and finished_at
    ]
