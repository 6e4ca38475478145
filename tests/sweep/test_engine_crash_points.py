"""The failpoints between a claim and its end, with a real environment and real engines: after a crash, an error or a
stop, no engine of that life remains, none overlaps another of its document, and all work ends.
"""

import signal

import pytest

from builds.models import Build
from runs import gates, scratch
from runs.models import Run
from tests.engines import outcome_of
from tests.factories import W2
from tests.races.invariants import assert_all_hold
from tests.stepping import until
from tests.sweep import world
from tests.sweep.test_crash_points import LIVES, WITH_ENGINES, held_by_the_process, still_leased
from work import recovery
from work.processes.scratch import sweep
from work.work_types import all_work_types, work_type_named

# The general failpoints before and after the work of an engine.
AROUND = ("run.claimed", "artifact.written", "run.finish.before_commit", "run.finish.after_commit")
AROUND_BUILDS = ("build.claimed", "build.finish.before_commit", "build.finish.after_commit")
POINTS = {
    **{point: life for point, life in LIVES.items() if life in WITH_ENGINES},
    **dict.fromkeys(AROUND, "engine"),
    **dict.fromkeys(AROUND_BUILDS, "environment"),
}
INSIDE_A_TRANSACTION = "before_commit"
# Longer than a run takes on a busy machine: these lives do not renew their leases.
LEASE = 4
SMOKE = {
    ("engine.spawned", "raise", "cold"),
    ("engine.spawned", "kill9", "warm"),
    ("build.exited", "raise", "warm"),
}


def marks(point, way, kind):
    """All cases run on SQLite. On PostgreSQL only the crashes do: `test_crash_points.py` covers the statements."""
    tier = [] if (point, way, kind) in SMOKE else [pytest.mark.long]
    return tier if (way, kind) == ("kill9", "warm") else [*tier, pytest.mark.once]


SWEEP = [
    pytest.param(point, way, kind, marks=marks(point, way, kind))
    for point, life in POINTS.items()
    for way in ("kill9", "raise", "stop")
    if (way, point.endswith(INSIDE_A_TRANSACTION)) != ("stop", True)
    for kind in ("warm", "cold")
    if kind == "warm" or point.startswith("engine.")
]


@pytest.mark.parametrize(("point", "way", "engines"), SWEEP)
def test_no_engine_is_left_and_none_overlaps_another(site, point, way, engines):
    life = POINTS[point]
    if life == "engine":
        site.build()
    # Each run works for 0.2 s, long enough for an overlap to be seen.
    document = site.document(seconds=0.2, keeps="result.txt")
    run, following = site.submit(document), site.submit(document)

    process = live(site, life, engines, ADE_FAILPOINTS=f"{point}:{way}*1")
    {"kill9": it_is_killed, "raise": it_meets_an_error, "stop": it_stands_still}[way](site, process, point, engines)
    until(lambda: not site.engines())
    world.let_time_pass()
    recovery.rescue_expired(all_work_types(), W2)
    assert_all_hold()
    finish_everything(site, life, engines)

    assert_all_hold(quiet=True)
    assert site.witness.overlaps() == []
    assert len(site.witness.running()) == len({each.run for each in site.witness.running()}) <= 2
    assert outcome_of(following) == (
        ("failed", "BUILD_FAILED") if (point, way) == ("build.exited", "raise") else ("succeeded", "")
    )
    run.refresh_from_db()
    at_work = site.witness.of(run)
    if run.status == "succeeded":
        assert [each.finished for each in at_work] == [True]
        assert [artifact.name for artifact in run.artifacts.all()] == ["result.txt"]
    else:
        assert not run.artifacts.exists()
        assert run.failure_type in ("PROCESS_TERMINATED", "ENGINE_FAILED", outcome_of(following)[1])
    assert made_at_once(site) <= 1
    assert not any(each.name.startswith(".building-") for each in (site.directory / "environments").iterdir())


def live(site, life, engines, **environment):
    values = {"ADE_VAR_DIR": site.directory, "ADE_LEASE_SECONDS": LEASE, "ADE_WARM_ENGINES": engines == "warm"}
    return site.programs.main("tests.sweep.lives", life, **values, **environment)


def it_is_killed(site, process, point, engines):
    assert process.code() == -signal.SIGKILL, process.logged()


def it_meets_an_error(site, process, point, engines):
    """A slot takes an error for a failure of its work and goes on with the next; between two rows it holds nothing."""
    is_held = not point.endswith(".claimed")
    assert process.code() == (0 if is_held else 1), process.logged()
    assert f"failpoint {point}" in process.logged()
    row = (Build if point.startswith("build.") else Run).objects.earliest("id")
    assert (row.status in row.TERMINAL) == is_held
    assert site.engines() == []


def it_stands_still(site, process, point, engines):
    until(process.is_stopped)
    kinds = [kind for kind in all_work_types() if kind.rescue]
    held = [(kind.states, id) for kind in kinds for id in held_by_the_process(kind.states)]
    until(lambda: not any(still_leased(kind) for kind in kinds))
    # The guard has ended the engine with the lease; then others continue with the document.
    until(lambda: not site.witness.at_work())
    recovery.rescue_expired(all_work_types(), W2)
    others = live(site, "environment", engines)
    if not held:
        others.code()
    else:
        until(lambda: site.witness.running() or not others.is_alive())
    process.send(signal.SIGCONT)

    assert process.code() == 0, process.logged()
    assert others.code() == 0, others.logged()
    assert not any(states.rows.filter(pk=id, lease_owner__contains=f":{process.pid}:").exists() for states, id in held)


def finish_everything(site, life, engines):
    for _ in range(5):
        world.let_time_pass()
        recovery.rescue_expired(all_work_types(), W2)
        gates.open_forgotten()
        process = live(site, "environment", engines)
        assert process.code() == 0, process.logged()
        if not Run.objects.live().exists():
            break
    sweep(scratch.root())
    assert site.left_behind() == []
    assert site.engines() == []
    work_type_named("build").periodic_tasks[0].do(W2)


def made_at_once(site):
    return 1 + max((len(each.beside) for each in site.witness.making()), default=0)
