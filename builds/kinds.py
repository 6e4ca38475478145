from builds import lane, lifecycle, periodic
from builds.builder import BuildFailed
from work.kinds import Kind, Lane, PeriodicTask
from work.supervise import CannotStart

BUILD = Kind(
    lifecycle.BUILD,
    lane=Lane(
        slots="ADE_MAX_BUILD_CONCURRENCY",
        claim=lifecycle.claim_next_build,
        do=lane.do,
        succeed=lane.succeed,
        fail=lane.fail,
        stop=lifecycle.stop,
        expected=(BuildFailed, CannotStart),
    ),
    rescue=lifecycle.rescue,
    budget="ADE_BUILD_TIMEOUT",
    # It handles files and not rows, so nothing waits for it.
    periodic_tasks=(PeriodicTask(periodic.tidy, every=60, when_rung=False),),
)
