from builds import chores, lane, lifecycle
from work.kinds import Chore, Kind, Lane

BUILD = Kind(
    lifecycle.BUILD,
    lane=Lane(
        slots="ADE_MAX_BUILD_CONCURRENCY",
        claim=lifecycle.claim_next_build,
        do=lane.do,
        succeed=lane.succeed,
        fail=lane.fail,
        stop=lifecycle.stop,
    ),
    rescue=lifecycle.rescue,
    budget="ADE_BUILD_TIMEOUT",
    # Files, not rows: nothing waits for it.
    chores=(Chore(chores.tidy, every=60, when_rung=False),),
)
