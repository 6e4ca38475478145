from runs import gates, handler, lifecycle, periodic, processing_gates
from work.work_types import Handler, PeriodicTask, WorkType

RUN = WorkType(
    lifecycle.RUN_STATES,
    handler=Handler(
        concurrency_setting="ADE_MAX_CONCURRENCY",
        claim=lifecycle.claim_next_run,
        do=handler.do,
        succeed=handler.succeed,
        fail=handler.fail,
        stop=lifecycle.stop,
        expected=handler.EXPECTED,
    ),
    rescue=lifecycle.rescue,
    budget="ADE_RUN_TIMEOUT_SECONDS",
    # Forgotten gates are rare and costly to find, so `open_forgotten` and `mend` do not run at every tick.
    periodic_tasks=(
        PeriodicTask(lifecycle.apply_build_results),
        PeriodicTask(lifecycle.apply_processing_failures),
        PeriodicTask(gates.open_forgotten, every=5),
        PeriodicTask(processing_gates.mend, every=5),
        PeriodicTask(periodic.retire_engines, every=5, when_rung=False),
        PeriodicTask(periodic.look_at_engines, when_rung=False),
        PeriodicTask(periodic.tidy, every=60, when_rung=False),
        PeriodicTask(periodic.sweep_artifacts, every=300, when_rung=False),
    ),
    wakes_on=("build",),
)
