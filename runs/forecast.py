"""When a queued run will probably begin: from its place in the queue, from how long runs like it took, and from the
slots of workers that are alive. Said with what it is based on, or with why nothing can be said.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median

from runs import why
from runs.lifecycle import RUN
from runs.models import BACKWARDS, OUTCOME, Run, RunQuerySet
from work import clock
from work.why import MOST_COUNTED, Crew, Explanation, Gate

# The last ones tell how long the next will take. Of any configuration, they are looked for among so many.
RECENT, AMONG = 50, 10_000
SAID = {
    "paused": "the queue is paused",
    "worker": "no worker with slots for runs is alive",
    "draining": "all workers with slots for runs drain",
    "build": "its build is not ready",
}


@dataclass(frozen=True)
class Forecast:
    status: str
    # None when it is not queued, or when more are ahead of it than are counted.
    position: int | None
    position_in_words: str
    estimated_start: datetime | None
    based_on: str


def of(run: Run) -> Forecast:
    return of_explained(run, why.explain(run))


def of_explained(run: Run, explanation: Explanation) -> Forecast:
    """For whoever has asked why it waits already."""
    gates = {gate.name: gate for gate in explanation.gates}
    if not gates:
        return Forecast(explanation.status, None, "not in the queue", None, explanation.message)
    ahead = int(gates["capacity"].data["ahead"])
    counted = ahead <= MOST_COUNTED
    position, words = (ahead + 1, str(ahead + 1)) if counted else (None, f"over {MOST_COUNTED:,}")
    found = _unsaid(gates, counted=counted) or _estimated(run, gates["document"], ahead)
    start, based_on = (None, found) if isinstance(found, str) else found
    return Forecast(explanation.status, position, words, start, based_on)


def _unsaid(gates: dict[str, Gate], *, counted: bool) -> str:
    """Why nothing can be said; nothing when something can."""
    for name in ("paused", "worker", "build"):
        if gates[name].holds:
            said = "draining" if gates[name].data.get("draining") else name
            return f"Nobody can say: {SAID[said]}."
    return "" if counted else f"Nobody can say: over {MOST_COUNTED:,} runs are ahead of it."


def _estimated(run: Run, of_document: Gate, ahead: int) -> tuple[datetime, str] | str:
    seconds, whose = _recent_seconds(run)
    if not seconds:
        return "Nobody can say: no run has succeeded yet."
    each, now, crew = median(seconds), clock.now(), Crew.now()
    slots = crew.slots(RUN.kind)
    begun = list(Run.objects.filter(status="running").values_list("lease_owner", "started_at"))
    at_work = sorted(_left(each, started_at, now) for owner, started_at in begun if owner in slots)
    free_in = (at_work + [0.0] * max(0, slots.total() - len(at_work)))[: slots.total()]
    if not free_in:
        return f"Nobody can say: {SAID['worker']}."
    wait = max(_until_turn(free_in, ahead, each), _until_free(of_document, each, now))
    based_on = (
        f"{ahead} ahead of it, {slots.total()} slots of workers that are alive, and {each:.1f} s for each:"
        f" the median of the last {len(seconds)} runs {whose} that succeeded"
    )
    return now + timedelta(seconds=wait), based_on


def _until_turn(free_in: list[float], ahead: int, each: float) -> float:
    """Those ahead take the slots as they become free; then it is its turn."""
    heapq.heapify(free_in)
    for _ in range(ahead):
        heapq.heapreplace(free_in, free_in[0] + each)
    return free_in[0]


def _until_free(of_document: Gate, each: float, now: datetime) -> float:
    """One run of a document runs at a time."""
    if not of_document.holds:
        return 0.0
    running = of_document.data["status"] == "running"
    older = int(of_document.data["ahead"])
    return older * each + (_left(each, of_document.since, now) if running else 0.0)


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
