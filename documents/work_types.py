from documents import (
    indexing,
    learning,
    lifecycle,
    orchestrator,
    periodic,
    retention,
    retyping,
    sender_updates,
    stages,
)
from work.work_types import Handler, PeriodicTask, WorkType

# No work waits for these tasks, so they run at their intervals only and no bell triggers them.
DOCUMENT = WorkType(
    lifecycle.DOCUMENT_STATES,
    periodic_tasks=(
        PeriodicTask(retention.purge_due, when_rung=False),
        PeriodicTask(periodic.sweep_blobs, every=300, when_rung=False),
        PeriodicTask(indexing.index_vectors, every=60, when_rung=False),
        PeriodicTask(retyping.advance, when_rung=False),
        PeriodicTask(learning.learn_due, when_rung=False),
        PeriodicTask(sender_updates.advance, when_rung=False),
    ),
)
JOB = WorkType(
    lifecycle.JOB_STATES,
    periodic_tasks=(
        PeriodicTask(lifecycle.reset_zombies, when_rung=False),
        PeriodicTask(orchestrator.orchestrate),
        PeriodicTask(periodic.sweep_outputs, every=300, when_rung=False),
    ),
    wakes_on=("job", "stage"),
)
STAGE = WorkType(
    lifecycle.STAGE_STATES,
    handler=Handler(
        concurrency_setting="ADE_STAGE_CONCURRENCY",
        claim=lifecycle.claim_stage,
        do=stages.do,
        succeed=stages.succeed,
        fail=stages.fail,
        expected=stages.EXPECTED,
    ),
    rescue=lifecycle.rescue_stage,
    periodic_tasks=(
        PeriodicTask(periodic.rest, every=10, when_rung=False),
        PeriodicTask(periodic.tidy, every=60, when_rung=False),
    ),
)
