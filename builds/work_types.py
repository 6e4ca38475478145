from builds import environments, handler, lifecycle
from builds.builder import BuildFailed
from work.processes.supervise import CannotStart
from work.work_types import Handler, PeriodicTask, WorkType

BUILD = WorkType(
    lifecycle.BUILD_STATES,
    handler=Handler(
        concurrency_setting="ADE_MAX_BUILD_CONCURRENCY",
        claim=lifecycle.claim_next_build,
        do=handler.do,
        succeed=handler.succeed,
        fail=handler.fail,
        stop=lifecycle.stop,
        expected=(BuildFailed, CannotStart),
    ),
    rescue=lifecycle.rescue,
    budget="ADE_BUILD_TIMEOUT",
    # `tidy` changes files and not rows, so it need not run before its next tick.
    periodic_tasks=(PeriodicTask(environments.tidy, every=60, when_rung=False),),
)
