from tests.testwork import lifecycle
from work.work_types import Handler, WorkType

KIND = WorkType(
    lifecycle.ERRAND,
    handler=Handler(
        concurrency_setting="ADE_MAX_CONCURRENCY",
        claim=lifecycle.claim_next,
        do=lifecycle.do,
        succeed=lifecycle.succeed,
        fail=lifecycle.fail,
        stop=lifecycle.stop,
    ),
    rescue=lifecycle.rescue,
)
