from webhooks import lifecycle, sending, upkeep
from webhooks.following import Follower
from work.work_types import Handler, PeriodicTask, WorkType

DELIVERY = WorkType(
    lifecycle.DELIVERY_STATES,
    handler=Handler(
        concurrency_setting="ADE_WEBHOOK_CONCURRENCY",
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
