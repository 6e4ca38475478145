from typing import Any

from django.core.management.base import CommandParser

from work.commands import Answer, Exit, Failure, OperatorCommand

REFUSAL = (
    "expected a worker, found django-q2's cluster, for which there is nothing to do here: `manage.py worker` looks at"
    " the schedules and runs the jobs"
)


class Command(OperatorCommand):
    """Replaces the command of django-q2, whose cluster would poll an empty queue without a pause."""

    help = "Refuse: nobody starts the cluster of django-q2. Jobs are run by `manage.py worker`."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--run-once", action="store_true", help="refused, too")
        parser.add_argument("-n", "--name", help="refused, too")

    def answer(self, **_options: Any) -> Answer:
        raise Failure(REFUSAL, Exit.REFUSED, "no_cluster")
