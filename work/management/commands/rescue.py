from typing import Any

from django.core.management.base import CommandParser
from django.db.models import F

from work import clock, recovery
from work.models import Event
from work.operations.commands import Answer, OperatorCommand, Row, actor_of, add_actor, table
from work.work_types import all_work_types

COLUMNS = ("kind", "id", "from_status", "to_status", "message")


class Command(OperatorCommand):
    help = (
        "Do now what every worker does regularly: recover the work of lost workers, and run the periodic tasks of"
        " each kind of work. Safe while workers run, and safe to repeat."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        add_actor(parser)

    def answer(self, **options: Any) -> Answer:
        by = actor_of(options["actor"])
        clock.measure()
        last = Event.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
        duties: list[Row] = []
        for kind in all_work_types():
            if kind.rescue:
                duties.append({"kind": kind.name, "duty": "rescue", "rows": recovery.rescue_expired([kind], by)})
            for task in kind.periodic_tasks:
                duties.append({"kind": kind.name, "duty": task.do.__name__, "rows": task.do(by)})
        events = Event.objects.filter(pk__gt=last, actor__in=[by, f"recovery by {by}"])
        transitions = events.exclude(from_status=F("to_status")).order_by("pk")
        rows = transitions.values_list("subject_kind", "subject_id", *COLUMNS[2:])
        moved: list[Row] = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
        text = [table(duties, "kind", "duty", "rows"), table(moved, *COLUMNS) if moved else "No status has changed."]
        return Answer({"duties": duties, "moved": moved}, "\n\n".join(text))
