"""Estimates when a queued run will start, from its position, the duration of similar runs and the live workers'
threads.

The estimate comes with its basis, or with the reason why there is none.
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
from work.why import MOST_COUNTED, Crew, Explanation, Gate

# The number of recent runs whose duration predicts the next one. If the configuration has none, runs of any
# configuration are searched among this many ids.
RECENT, AMONG = 50, 10_000
SAID = {
    "paused": "the run queue is paused",
    "worker": "no live worker takes runs",
    "draining": "all workers that take runs are draining",
    "build": "its build is not ready",
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
    ahead = _ahead(run)
    counted = len(ahead) <= MOST_COUNTED
    position, words = (len(ahead) + 1, str(len(ahead) + 1)) if counted else (None, f"over {MOST_COUNTED:,}")
    found = _unsaid(gates, counted=counted) or _estimated(run, ahead)
    start, based_on = (None, found) if isinstance(found, str) else found
    return Forecast(explanation.status, position, words, start, based_on)


def _unsaid(gates: dict[str, Gate], *, counted: bool) -> str:
    """Return why there is no estimate, or an empty string."""
    for name in ("paused", "worker", "build"):
        if gates[name].holds:
            said = "draining" if gates[name].data.get("draining") else name
            return f"No estimate: {SAID[said]}."
    return "" if counted else f"No estimate: over {MOST_COUNTED:,} runs are ahead of it."


def _ahead(run: Run) -> list[int]:
    """Return the documents of older runs that will start without waiting for a build, oldest first.

    This includes runs that wait for another run of their document: they too take a thread before this run.
    """
    in_turn = Run.objects.filter(status="queued", gate__in=IN_TURN)
    # With the first condition the index excludes all later runs.
    older = in_turn.filter(created_at__lte=run.created_at).filter(Q(created_at__lt=run.created_at) | Q(pk__lt=run.pk))
    return list(older.order_by("created_at", "id").values_list("input_document_id", flat=True)[: MOST_COUNTED + 1])


def _estimated(run: Run, ahead: Sequence[int]) -> tuple[datetime, str] | str:
    seconds, whose = _recent_seconds(run)
    if not seconds:
        return "No estimate: no run has succeeded yet."
    each, now, crew = median(seconds), clock.now(), Crew.now()
    slots = crew.slots(RUN_STATES.kind)
    columns = ("lease_owner", "input_document_id", "started_at")
    begun = [
        (owner, document, _left(each, started_at, now))
        for owner, document, started_at in Run.objects.filter(status="running").values_list(*columns)
    ]
    at_work = sorted(left for owner, _, left in begun if owner in slots)
    free_in = (at_work + [0.0] * max(0, slots.total() - len(at_work)))[: slots.total()]
    if not free_in:
        return f"No estimate: {SAID['worker']}."
    busy = {document: left for _, document, left in begun}
    wait = _until_turn(free_in, [*ahead, run.input_document_id], busy, each)
    based_on = (
        f"runs ahead of it: {len(ahead)}; threads of live workers: {slots.total()}; {each:.1f} s per run"
        f" (median of the last {len(seconds)} successful runs {whose})"
    )
    return now + timedelta(seconds=wait), based_on


def _until_turn(free_in: list[float], documents: Sequence[int], busy: Mapping[int, float], each: float) -> float:
    """Return in how many seconds the last of these runs starts. Each run is given by its document.

    Whenever a thread is free, the oldest run that can start takes it. One run of a document runs at a time.
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


def _left(each: float, started_at: datetime | None, now: datetime) -> float:
    return max(0.0, each - (now - started_at).total_seconds()) if started_at else each


def _recent_seconds(run: Run) -> tuple[Sequence[float], str]:
    done = Run.objects.annotate(now=OUTCOME, backwards=BACKWARDS).filter(now="succeeded").order_by("backwards")
    own = _seconds(done.filter(configuration_id=run.configuration_id))
    if own:
        return own, "of its configuration"
    among = Run.objects.filter(pk__gt=run.pk - AMONG, status="succeeded").order_by("-pk")
    return _seconds(among), "of any configuration"


def _seconds(runs: RunQuerySet) -> list[float]:
    times = runs.values_list("started_at", "finished_at")[:RECENT]
    return [(ended - began).total_seconds() for began, ended in times if began and ended]
