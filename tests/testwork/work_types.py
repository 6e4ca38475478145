from tests.testwork import lifecycle
from work.work_types import Kind, Lane

KIND = Kind(
    lifecycle.ERRAND,
    lane=Lane(
        slots="ADE_MAX_CONCURRENCY",
        claim=lifecycle.claim_next,
        do=lifecycle.do,
        succeed=lifecycle.succeed,
        fail=lifecycle.fail,
        stop=lifecycle.stop,
    ),
    rescue=lifecycle.rescue,
)
