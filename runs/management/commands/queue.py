from dataclasses import asdict
from typing import Any

from django.contrib.auth.models import AnonymousUser

from runs import queue
from work.operations.commands import AddVerb, Answer, Exit, NounCommand, actor_of, add_actor, fields
from work.operations.outcomes import Outcome


class Command(NounCommand):
    help = "The run queue: how full it is, and whether it is paused."

    def add_verbs(self, add: AddVerb) -> None:
        add("show", self.show, "Show how full it is, and whether it is paused.")
        pause = add(
            "pause", self.pause, "Stop claiming runs, of all workspaces. Running runs, submissions and builds continue."
        )
        pause.add_argument("--reason", default="", help="reason, shown to people who wait for a run")
        add_actor(pause)
        add_actor(add("resume", self.resume, "Claim queued runs again."))

    def show(self, **_: Any) -> Answer:
        told = _told()
        return Answer(told, fields(told))

    def pause(self, *, reason: str, actor: str | None, **_: Any) -> Answer:
        done = queue.pause(actor=actor_of(actor), reason=reason)
        return _answer(Outcome.PAUSED if done else Outcome.WAS_PAUSED, done=done)

    def resume(self, *, actor: str | None, **_: Any) -> Answer:
        done = queue.resume(actor=actor_of(actor))
        return _answer(Outcome.RESUMED if done else Outcome.NOT_PAUSED, done=done)


def _answer(outcome: Outcome, *, done: bool) -> Answer:
    told = {"result": outcome, **_told()}
    return Answer(told, fields(told), Exit.DONE if done else Exit.REFUSED)


def _told() -> dict[str, Any]:
    state = queue.state(AnonymousUser())
    row = state.row
    paused = {name: getattr(row, name, None) or None for name in ("paused_at", "paused_by", "pause_reason")}
    return {**asdict(state.total), "limit": state.limit, "free": state.free, "slots": state.slots, **paused}
