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
        data = _data()
        return Answer(data, fields(data))

    def pause(self, *, reason: str, actor: str | None, **_: Any) -> Answer:
        has_paused = queue.pause(actor=actor_of(actor), reason=reason)
        return _answer(Outcome.PAUSED if has_paused else Outcome.WAS_PAUSED, Exit.DONE if has_paused else Exit.REFUSED)

    def resume(self, *, actor: str | None, **_: Any) -> Answer:
        has_resumed = queue.resume(actor=actor_of(actor))
        return _answer(
            Outcome.RESUMED if has_resumed else Outcome.NOT_PAUSED, Exit.DONE if has_resumed else Exit.REFUSED
        )


def _answer(outcome: Outcome, exit: Exit) -> Answer:
    data = {"result": outcome, **_data()}
    return Answer(data, fields(data), exit)


def _data() -> dict[str, Any]:
    state = queue.state(AnonymousUser())
    row = state.row
    paused = {name: getattr(row, name, None) or None for name in ("paused_at", "paused_by", "pause_reason")}
    return {**asdict(state.total), "limit": state.limit, "free": state.free, "slots": state.slots, **paused}
