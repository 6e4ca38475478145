"""Actor commands for the engine part: create configurations, submit runs, cancel them, and read their outcome. Real
workers execute the runs.
"""

import time
from collections.abc import Callable
from typing import Any

from django.db import models

from benchmarks import loops, rows
from builds import environments
from builds import lifecycle as builds
from builds.models import Build, Configuration
from documents.models import Document
from runs import lifecycle
from runs.models import Run, RunField
from work.models import Event
from work.processes import supervise
from work.sql import guards
from workspaces.models import Workspace

# The interval of polling while waiting for many runs, and for a single run.
LOOK_SECONDS, CLOSE_LOOK_SECONDS = 0.05, 0.002
# If an operation takes longer than this, something hangs.
PATIENCE_SECONDS = 300.0
# Poll only after this time, when the engine has reported and ended: earlier polls would disturb the measurement.
SETTLED_SECONDS = 0.02


def configure(sources: dict[str, tuple[str, str]]) -> None:
    """Create a configuration for each of these sources. Their steps use only a document's text, so documents need no
    extraction.
    """
    workspace = Workspace.objects.get()
    for name, (requirements, main) in sources.items():
        files = {"main.py": main}
        Configuration.objects.create(workspace=workspace, name=name, requirements=requirements, files=files)


def build() -> dict[str, str]:
    """Have a worker build the configurations of `configure`. Return the path of each environment's Python."""
    # Skip the configurations of `rows.seed`, whose builds exist only in the database.
    wanted = Configuration.objects.exclude(name__in=["ready", "unready"])
    ids = {of.name: builds.get_or_create_build(of, actor=rows.ACTOR).id for of in wanted}
    _until(lambda: not Build.objects.filter(pk__in=ids.values()).exclude(status__in=Build.TERMINAL).exists())
    return {name: _python(Build.objects.get(pk=id), name) for name, id in ids.items()}


def sandbox() -> str:
    return supervise.sandbox_level()


def drain(name: str, number: int) -> dict[str, float]:
    """Submit this many runs at once. Return the seconds from the start of the first to the finish of the last."""
    behind = rows.last_run()
    _submit(name, number)
    _until(lambda: not _live(behind))
    found = _span(Run.objects.filter(pk__gt=behind))
    if found["succeeded"] != number:
        raise RuntimeError(f"{found['succeeded']} of {number} runs succeeded: {_failures(behind)}")
    return {"seconds": found["seconds"]}


def queue(name: str, number: int) -> int:
    """Submit runs without waiting. Return the ID of the last run that existed before."""
    behind = rows.last_run()
    _submit(name, number)
    return behind


def start(name: str, text: str = "") -> int:
    """Submit one run of a document with this text, and wait until a worker has claimed it."""
    (document,) = rows.documents(1)
    Document.objects.filter(pk=document.pk).update(text=text)
    (id,) = lifecycle.submit_many(rows.configuration(name), [document], actor=rows.ACTOR)
    _until(lambda: _status(id) != "queued", CLOSE_LOOK_SECONDS)
    return id


def cancel(id: int) -> dict[str, int]:
    """Cancel a run. Return the moments, by time.monotonic_ns(), at which the request was committed and the run was
    cancelled.
    """
    lifecycle.cancel(Run.objects.get(pk=id), actor=rows.ACTOR)
    committed = time.monotonic_ns()
    status = _ended(id)
    if status != "cancelled":
        raise RuntimeError(f"run {id} should have been cancelled, but it is {status}: {_failures(id - 1)}")
    return {"committed": committed, "cancelled": time.monotonic_ns()}


def beside(id: int, behind: int) -> dict[str, float]:
    """Wait until the run `id` ends. Return the time that it used, and the rate at which runs after `behind` finished
    meanwhile.
    """
    _until(lambda: _status(id) != "running")
    run = Run.objects.get(pk=id)
    if run.status != "succeeded" or run.started_at is None or run.finished_at is None:
        raise RuntimeError(f"run {id} should have succeeded, but it is {run.status}: {_failures(id - 1)}")
    meanwhile = _span(Run.objects.filter(pk__gt=behind, finished_at__lte=run.finished_at))
    if not meanwhile["succeeded"] or not _live(behind):
        raise RuntimeError(
            f"some, but not all, later runs should have ended during run {id}; {meanwhile['succeeded']:.0f} succeeded"
        )
    told = Event.objects.get(subject_kind="run", subject_id=id, kind="RUN_SUCCEEDED").data or {}
    rate = meanwhile["succeeded"] / meanwhile["seconds"]
    return {"rate": rate, "seconds": told["seconds"], "processor": told["cpu_seconds"]}


def forget_queued(behind: int) -> None:
    """Delete the queued runs and let the running ones finish."""
    with guards.retention():
        rows.execute(
            "DELETE FROM events WHERE subject_kind = 'run' AND subject_id IN"
            " (SELECT id FROM runs WHERE id > %s AND status = 'queued')",
            [behind],
        )
    rows.execute("DELETE FROM runs WHERE id > %s AND status = 'queued'", [behind])
    _until(lambda: not _live(behind))


def pick_up(ways: list[str], number: int, gap: float) -> dict[str, list[float]]:
    """Return the milliseconds from a submission until the step (or a bare fork) begins, trying each way in turn."""
    of = rows.configuration("statement")

    def submit(document: Any) -> tuple[int, int]:
        (id,) = lifecycle.submit_many(of, [document], actor=rows.ACTOR)
        return time.monotonic_ns(), _told(id)

    return loops.in_turn(ways, number, gap, submit)


def _submit(name: str, number: int) -> None:
    # Skip the first document, which `start` uses.
    lifecycle.submit_many(rows.configuration(name), rows.documents(number, offset=1), actor=rows.ACTOR)


def _told(id: int) -> int:
    time.sleep(SETTLED_SECONDS)
    if _ended(id) != "succeeded":
        raise RuntimeError(f"run {id} should have succeeded: {_failures(id - 1)}")
    return int(str(RunField.objects.get(run=id, name="at").value))


def _ended(id: int) -> str:
    _until(lambda: _status(id) in Run.TERMINAL, CLOSE_LOOK_SECONDS)
    return _status(id)


def _status(id: int) -> str:
    return Run.objects.values_list("status", flat=True).get(pk=id)


def _live(behind: int) -> int:
    live = [Run.objects.filter(pk__gt=behind, status=status).count() for status in ("queued", "running")]
    return sum(live)


def _python(build: Build, name: str) -> str:
    if build.status != "ready":
        raise RuntimeError(f"the configuration {name} could not be built: {build.error_message}")
    return environments.python_of(environments.path_of(environments.name_of(build.fingerprint, build.lock)))


def _until(is_so: Callable[[], bool], every: float = LOOK_SECONDS) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        if time.monotonic() > until:
            raise TimeoutError("the worker does not execute the submitted runs")
        time.sleep(every)


def _span(of: "models.QuerySet[Run]") -> dict[str, float]:
    found = of.filter(status="succeeded").aggregate(
        first=models.Min("started_at"), last=models.Max("finished_at"), number=models.Count("pk")
    )
    seconds = (found["last"] - found["first"]).total_seconds() if found["number"] else 0.0
    return {"succeeded": found["number"], "seconds": seconds}


def _failures(behind: int) -> list[str]:
    failed = Run.objects.filter(pk__gt=behind, status="failed")
    return list(failed.values_list("error_message", flat=True)[:3])
