from typing import Any

from documents import operations
from documents.models import SenderLesson
from work.operations.commands import AddVerb, Answer, NounCommand, Row, actor_of, add_actor, add_ids, of_each
from work.operations.outcomes import Outcome
from work.operations.previews import Operation


class Command(NounCommand):
    help = "Single lessons of senders; `manage.py sender show` lists them."

    def add_verbs(self, add: AddVerb) -> None:
        off = add("off", self.switch_off, "Switch lessons off: they are not used, and give no values.")
        on = add("on", self.switch_on, "Switch lessons on again, for new documents.")
        for parser in (off, on):
            add_ids(parser, many=True)
            add_actor(parser)

    def switch_off(self, *, ids: list[int], actor: str | None, **_: Any) -> Answer:
        return _each(operations.LESSON_OFF, ids, actor)

    def switch_on(self, *, ids: list[int], actor: str | None, **_: Any) -> Answer:
        return _each(operations.LESSON_ON, ids, actor)


def _each(operation: Operation, ids: list[int], actor: str | None) -> Answer:
    def one(lesson: SenderLesson) -> tuple[Outcome, Row]:
        return operation.apply_to(lesson, actor=actor_of(actor)).outcome, {}

    return of_each("lesson", ids, SenderLesson.objects.in_bulk(ids), one)
