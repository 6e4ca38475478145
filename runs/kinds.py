from runs import gates, job_runs, lane, lifecycle, periodic
from runs.jobs import lane as job_lane
from runs.jobs.schedules import Scheduler
from work.kinds import Kind, Lane, PeriodicTask

RUN = Kind(
    lifecycle.RUN,
    lane=Lane(
        slots="ADE_MAX_CONCURRENCY",
        claim=lifecycle.claim_next_run,
        do=lane.do,
        succeed=lane.succeed,
        fail=lane.fail,
        stop=lifecycle.stop,
        expected=lane.EXPECTED,
    ),
    rescue=lifecycle.rescue,
    budget="ADE_RUN_TIMEOUT_SECONDS",
    # Gates are rarely left shut and costly to find, so that task does not run at every tick.
    periodic_tasks=(
        PeriodicTask(lifecycle.heed_builds),
        PeriodicTask(gates.open_forgotten, every=5),
        PeriodicTask(periodic.retire_engines, every=5, when_rung=False),
        PeriodicTask(periodic.look_at_engines, when_rung=False),
        PeriodicTask(periodic.tidy, every=60, when_rung=False),
        PeriodicTask(periodic.sweep_artifacts, every=300, when_rung=False),
    ),
    wakes_on=("build",),
)
JOB_RUN = Kind(
    job_runs.JOB_RUN,
    lane=Lane(
        slots="ADE_JOB_CONCURRENCY",
        claim=job_lane.claim,
        do=job_lane.do,
        succeed=job_lane.succeed,
        fail=job_lane.fail,
        expected=job_lane.EXPECTED,
    ),
    rescue=job_runs.rescue,
    periodic_tasks=(PeriodicTask(Scheduler().tick, when_rung=False),),
)
