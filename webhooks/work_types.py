from webhooks import lifecycle, sending, upkeep
from webhooks.following import Follower
from work.work_types import Kind, Lane, PeriodicTask

DELIVERY = Kind(
    lifecycle.DELIVERY,
    lane=Lane(
        slots="ADE_WEBHOOK_CONCURRENCY",
        claim=lifecycle.claim_next_delivery,
        do=sending.do,
        succeed=sending.succeed,
        fail=sending.fail,
        expected=sending.EXPECTED,
    ),
    rescue=lifecycle.rescue,
    periodic_tasks=(
        PeriodicTask(Follower().follow, when_rung=False),
        PeriodicTask(upkeep.drop_of_removed, every=2, when_rung=False),
    ),
)
