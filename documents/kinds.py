from documents import lifecycle, orchestrator, stages
from work.kinds import Chore, Kind, Lane

DOCUMENT = Kind(lifecycle.DOCUMENT)
JOB = Kind(
    lifecycle.JOB,
    chores=(Chore(lifecycle.reset_zombies, when_rung=False), Chore(orchestrator.orchestrate)),
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
)
