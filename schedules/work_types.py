from schedules import handler, job_runs
from schedules.schedules import Scheduler
from work.work_types import Kind, Lane, PeriodicTask

JOB_RUN = Kind(
    job_runs.JOB_RUN,
    lane=Lane(
        slots="ADE_JOB_CONCURRENCY",
        claim=handler.claim,
        do=handler.do,
        succeed=handler.succeed,
        fail=handler.fail,
        expected=handler.EXPECTED,
    ),
    rescue=job_runs.rescue,
    periodic_tasks=(PeriodicTask(Scheduler().tick, when_rung=False),),
)
