from documents import chores, indexing, lifecycle, orchestrator, retention, stages
from work.kinds import Chore, Kind, Lane

# No work waits for these chores, so no bell triggers them.
DOCUMENT = Kind(
    lifecycle.DOCUMENT,
    chores=(
        Chore(retention.purge_due, when_rung=False),
        Chore(chores.sweep_blobs, every=300, when_rung=False),
        Chore(indexing.index_vectors, every=60, when_rung=False),
    ),
)
JOB = Kind(
    lifecycle.JOB,
    chores=(
        Chore(lifecycle.reset_zombies, when_rung=False),
        Chore(orchestrator.orchestrate),
        Chore(chores.sweep_outputs, every=300, when_rung=False),
    ),
    wakes_on=("job", "stage"),
)
STAGE = Kind(
    lifecycle.STAGE,
    lane=Lane(
        slots="ADE_STAGE_CONCURRENCY",
        claim=lifecycle.claim_stage,
        do=stages.do,
        succeed=stages.succeed,
        fail=stages.fail,
        expected=stages.EXPECTED,
    ),
    rescue=lifecycle.rescue_stage,
    chores=(
        Chore(chores.rest, every=10, when_rung=False),
        Chore(chores.tidy, every=60, when_rung=False),
    ),
)
