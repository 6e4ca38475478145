"""ADE's work type for runs, with a handler that only records the moment at which it was called."""

import os
import struct
import time
from dataclasses import replace
from functools import cache

from runs import lifecycle, work_types
from work.claims import Claim
from work.work_types import Handler

# Names a pipe or file to which the moment of each claim is written, for the process that waits for the claim.
PIPE = "ADE_BENCHMARK_PIPE"
MOMENT = struct.Struct("<qq")


def do(claim: Claim) -> None:
    stamp(claim.id)


def stamp(id: int) -> None:
    if os.environ.get(PIPE):
        os.write(_pipe(), MOMENT.pack(id, time.monotonic_ns()))


@cache
def _pipe() -> int:
    return os.open(os.environ[PIPE], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)


RUN = replace(
    work_types.RUN,
    handler=Handler(
        concurrency_setting="ADE_MAX_CONCURRENCY",
        claim=lifecycle.claim_next_run,
        do=do,
        succeed=lambda claim, _result: lifecycle.succeed(claim),
        fail=lambda claim, error: lifecycle.fail(claim, "ENGINE_FAILED", str(error)),
        stop=lifecycle.stop,
    ),
)
