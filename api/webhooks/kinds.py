from api.webhooks import lifecycle, sending, upkeep
from api.webhooks.following import Follower
from work.kinds import Chore, Kind, Lane

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
    chores=(
        Chore(Follower().follow, when_rung=False),
        Chore(upkeep.drop_of_removed, every=2, when_rung=False),
    ),
)
