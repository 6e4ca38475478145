"""A minimal worker process: it claims and ends runs until none are left, and recovers lost ones. It abandons some
claims as if it had died.
"""

import json
import random
import sys
import time

from runs import gates
from runs import lifecycle as runs
from runs.models import Run
from work import recovery
from work.sql.contention import Contended
from work.work_types import all_work_types


def main(owner, seed):
    chance = random.Random(seed)
    did = dict.fromkeys(["succeed", "fail", "refused", "abandon", "recovered", "contended"], 0)
    look_at = 0.0
    while Run.objects.live().exists():
        if time.monotonic() >= look_at:
            did["recovered"] += look_after_others(owner)
            look_at = time.monotonic() + 1
        try:
            what = do_one(owner, chance)
        except Contended:
            what = "contended"
        if what:
            did[what] += 1
        if what in (None, "contended"):
            time.sleep(0.01)
    sys.stdout.write(json.dumps(did) + "\n")


def do_one(owner, chance):
    claim = runs.claim_next_run(owner)
    if claim is None:
        return None
    what = chance.choices(["succeed", "fail", "abandon"], [90, 8, 2])[0]
    done = {
        "succeed": lambda: runs.succeed(claim),
        "fail": lambda: runs.fail(claim, "ENGINE_FAILED", "exit code 1"),
        "abandon": lambda: True,
    }[what]()
    return what if done else "refused"


def look_after_others(owner):
    recovered = recovery.rescue_expired(all_work_types(), owner)
    runs.apply_build_results(owner)
    gates.open_forgotten()
    return recovered
