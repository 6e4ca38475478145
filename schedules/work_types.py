from schedules import handler, job_runs
from schedules.scheduler import Scheduler
from work.work_types import Handler, PeriodicTask, WorkType

JOB_RUN = WorkType(
    job_runs.JOB_RUN_STATES,
    handler=Handler(
        concurrency_setting="ADE_JOB_CONCURRENCY",
        claim=handler.claim,
        do=handler.do,
        succeed=handler.succeed,
        fail=handler.fail,
        expected=handler.EXPECTED,
    ),
    rescue=job_runs.rescue,
    periodic_tasks=(PeriodicTask(Scheduler().tick, when_rung=False),),
)
