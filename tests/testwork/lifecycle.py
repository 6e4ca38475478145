import sys
import tempfile
import time

from tests.testwork.models import Errand
from work import lifecycle
from work.claims import Interrupted
from work.processes import supervise
from work.state_machine import By, StateMachine, Transition

ERRAND = StateMachine(
    kind="errand",
    model=Errand,
    initial="queued",
    created="ERRAND_QUEUED",
    table={
        "start": Transition(("queued",), "doing", By.WORKER, "ERRAND_STARTED"),
        "succeed": Transition(("doing",), "done", By.HOLDER, "ERRAND_DONE"),
        "fail": Transition(("doing",), "failed", By.HOLDER, "ERRAND_FAILED"),
        "cancel": Transition(("queued",), "cancelled", By.PERSON, "ERRAND_CANCELLED"),
        "request_cancel": Transition(("doing",), "doing", By.PERSON, "ERRAND_CANCEL_REQUESTED"),
        "stop": Transition(("doing",), "cancelled", By.HOLDER, "ERRAND_CANCELLED"),
        "again": Transition(("failed", "cancelled"), "queued", By.PERSON, "ERRAND_QUEUED_AGAIN"),
        "release": Transition(("doing",), "queued", By.RECOVERY, "ERRAND_RELEASED"),
    },
)


def add(**values):
    (id,) = lifecycle.create(ERRAND, values)
    return Errand.objects.get(pk=id)


def claim_next(owner):
    return lifecycle.claim_next(ERRAND, "start", owner, Errand.objects.claimable, "script")


def do(claim):
    """Run a script: `noop`, `sleep:N` in this process, `deaf:N` without checking the claim, `child:N` in a child
    process, `raise`.
    """
    action, _, argument = claim.values["script"].partition(":")
    if action == "raise":
        raise ValueError("as the script says")
    if action == "sleep":
        until = time.monotonic() + float(argument)
        while time.monotonic() < until:
            claim.go_on()
            time.sleep(0.02)
    if action == "deaf":
        time.sleep(float(argument))
    if action == "child":
        code = f"import time; time.sleep({float(argument)})"
        with tempfile.TemporaryDirectory() as directory:
            ended = supervise.run(
                [sys.executable, "-c", code],
                cwd=directory,
                on_start=lambda child: keep(claim, child),
                stop=claim.why_stop,
                grace_seconds=0.5,
            )
        if ended.stop_reason:
            raise Interrupted(ended.stop_reason)
    return action


def keep(claim, child):
    claim.take_charge_of(child)
    lifecycle.record_process(claim, child.process_id.to_json())


def succeed(claim, result):
    return lifecycle.finish(claim, "succeed", result=result, guards={"cancel_requested_at__isnull": True})


def fail(claim, error):
    return lifecycle.finish(claim, "fail", failure_type="FAILED", error_message=str(error))


def stop(claim):
    return lifecycle.finish(claim, "stop", guards={"cancel_requested_at__isnull": False})


def rescue(found):
    return found.move("release", message=found.rule)
