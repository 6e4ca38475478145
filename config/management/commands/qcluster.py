from typing import Any

from django.core.management.base import CommandParser

from work.operations.commands import Answer, Exit, Failure, OperatorCommand

REFUSAL = "ADE does not use the cluster of django-q2. `manage.py worker` watches the schedules and runs the jobs."


class Command(OperatorCommand):
    """Replaces django-q2's command, because its cluster would poll an empty queue without a pause."""

    help = "Refused: ADE does not use the cluster of django-q2. `manage.py worker` runs the jobs."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--run-once", action="store_true", help="refused, too")
        parser.add_argument("-n", "--name", help="refused, too")

    def answer(self, **_options: Any) -> Answer:
        raise Failure(REFUSAL, Exit.REFUSED, "no_cluster")
