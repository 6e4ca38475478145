"""Shared parts of the operator commands, `manage.py NOUN VERB …`.

With --json a command prints one JSON document, otherwise aligned text. Errors go to stderr, and the exit code shows
which kind of error it was.
"""

import argparse
import getpass
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntEnum
from typing import Any, NoReturn, TypeVar

from django.core.management.base import BaseCommand, CommandError, CommandParser, DjangoHelpFormatter
from django.db import InterfaceError, OperationalError, connections

from work.models import Event
from work.operations.encoding import Encoder
from work.operations.outcomes import DONE, Outcome

# The maximum length of a name, which leaves room for the words around it in an event's actor.
LONGEST_NAME = 170
# The maximum width of a cell in a list. `show` prints the whole text.
WIDEST_CELL = 60
# The largest id that the databases can store.
LARGEST_ID = 2**63 - 1
LARGEST_LIMIT = 10_000
# Times outside these years are typing mistakes, and the time zone data do not cover them.
EARLIEST, LATEST = 1970, 2200

Row = Mapping[str, Any]
T = TypeVar("T")


class Exit(IntEnum):
    DONE = 0
    REFUSED = 1
    USAGE = 2
    # gunicorn dictates this number; see `EXIT_CODE` in config/environment_reader.py.
    SETTINGS = 3
    QUEUE_FULL = 4
    DATABASE_AWAY = 5
    NOT_FOUND = 6


MEANINGS = {
    Exit.DONE: "done",
    Exit.REFUSED: "refused or failed: the row is in the wrong state, or a check failed",
    Exit.USAGE: "invalid command line",
    Exit.SETTINGS: "invalid settings; nothing was started",
    Exit.QUEUE_FULL: "the queue is full; nothing was accepted, try again later",
    Exit.DATABASE_AWAY: "the database is unavailable or busy; try again later",
    Exit.NOT_FOUND: "something that was named does not exist",
}
# Decides the exit code of a command on several rows. Any other outcome that is not in DONE counts as refused.
_WORST_FIRST = ((Outcome.NOT_FOUND, Exit.NOT_FOUND), (Outcome.NO_PLACE, Exit.QUEUE_FULL))
EXIT_CODES = "Exit codes: " + "; ".join(f"{code.value} {meaning}" for code, meaning in MEANINGS.items()) + "."


class Failure(CommandError):
    """Ends a command with a message and an exit code. JSON output also has the code and the details."""

    def __init__(self, message: str, exit: Exit, code: str, **details: Any) -> None:
        super().__init__(message, returncode=exit)
        self.code, self.details = code, details


def not_found(kind: str, wanted: object, hint: str) -> Failure:
    message = f"Unknown {kind} {wanted!r}; {hint}."
    return Failure(message, Exit.NOT_FOUND, "not_found", kind=kind, wanted=wanted)


@dataclass(frozen=True)
class Answer:
    data: Mapping[str, Any]
    text: str
    exit: Exit = Exit.DONE


Verb = Callable[..., Answer]
# Given a name, a verb and a description, returns the parser of the verb's arguments.
AddVerb = Callable[[str, Verb, str], argparse.ArgumentParser]


class OperatorCommand(BaseCommand):
    # Only `doctor` runs system checks. A command that reads one row should not wait for them.
    requires_system_checks: Any = ()

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        return super().create_parser(prog_name, subcommand, epilog=EXIT_CODES, **kwargs)

    def add_arguments(self, parser: CommandParser) -> None:
        add_json(parser)

    def answer(self, **options: Any) -> Answer:
        raise NotImplementedError

    def handle(self, *args: Any, **options: Any) -> None:
        answer = self.answer(**options)
        self.stdout.write(as_json(answer.data) if options.get("json") else answer.text)
        if answer.exit:
            sys.exit(answer.exit)

    def run_from_argv(self, argv: list[str]) -> None:
        """Run the command as Django's method does, but with ADE's error format and exit codes."""
        in_json = "--json" in argv
        try:
            options = self._parse(argv)
            self.execute(*options.pop("args", ()), **options)
            self.stdout.flush()
        except Failure as failure:
            self._end(failure, in_json=in_json)
        except CommandError as error:
            self._end(Failure(str(error), Exit(error.returncode), "refused"), in_json=in_json)
        except (OperationalError, InterfaceError) as error:
            reason = " ".join(str(error).split())
            message = f"The database is unavailable: {reason}. Run `manage.py doctor` for details."
            self._end(Failure(message, Exit.DATABASE_AWAY, "database_unavailable"), in_json=in_json)
        except BrokenPipeError:
            # The reader has closed the pipe (`… | head`). Python's flush at exit must not fail because of it.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        finally:
            connections.close_all()

    def _parse(self, argv: list[str]) -> dict[str, Any]:
        parser = self.create_parser(argv[0], argv[1])
        try:
            return vars(parser.parse_args(argv[2:]))
        except CommandError as error:
            reason = str(error).removeprefix("Error: ")
            message = f"Invalid command line: {reason}. See `{parser.prog} --help`."
            raise Failure(message, Exit.USAGE, "usage") from error

    def _end(self, failure: Failure, *, in_json: bool) -> NoReturn:
        data = {"code": failure.code, "message": str(failure), "details": failure.details}
        self.stderr.write(as_json(data) if in_json else clean(str(failure)))
        sys.exit(failure.returncode)


class NounCommand(OperatorCommand):
    verb_is_required = True

    def add_verbs(self, add: AddVerb) -> None:
        raise NotImplementedError

    def add_arguments(self, parser: CommandParser) -> None:
        parsers = parser.add_subparsers(metavar="VERB", dest="verb", required=self.verb_is_required)

        def add(name: str, verb: Verb, description: str) -> argparse.ArgumentParser:
            verb_parser = parsers.add_parser(
                name, help=description, description=description, epilog=EXIT_CODES, formatter_class=DjangoHelpFormatter
            )
            add_json(verb_parser)
            verb_parser.set_defaults(do=verb)
            return verb_parser

        self.add_verbs(add)

    def answer(self, **options: Any) -> Answer:
        verb: Verb = options.pop("do")
        return verb(**options)


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def add_actor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--as", dest="actor", metavar="NAME", help="actor recorded in the history (default: your login name)"
    )


def add_ids(parser: argparse.ArgumentParser, *, many: bool = False) -> None:
    if many:
        parser.add_argument("ids", metavar="ID", type=identifier, nargs="+")
    else:
        parser.add_argument("id", metavar="ID", type=identifier)


def add_limit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--limit", type=limit, default=50, help="maximum number of rows, newest first (default: %(default)s)"
    )
    parser.add_argument("--before", metavar="ID", type=identifier, help="only rows older than this one")


def actor_of(name: str | None) -> str:
    """Return the actor to record in events: the given name, by default the login name."""
    if not name:
        try:
            name = getpass.getuser()
        except (OSError, KeyError, ImportError):
            # In a container, the user id may have no name.
            name = f"user {os.getuid()}"
    return f"{clean(name).strip()[:LONGEST_NAME] or 'unknown'} (command)"


def identifier(text: str) -> int:
    # int() alone would also accept underscores and non-ASCII digits.
    if re.fullmatch(r"[0-9]{1,19}", text) is None or int(text) > LARGEST_ID:
        raise argparse.ArgumentTypeError(f"must be an id, which is a whole number, not {text!r}")
    return int(text)


def limit(text: str) -> int:
    if re.fullmatch(r"[0-9]{1,5}", text) is None or not 1 <= int(text) <= LARGEST_LIMIT:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 to {LARGEST_LIMIT}, not {text!r}")
    return int(text)


def moment(text: str) -> datetime:
    """Parse an ISO 8601 time. A time without an offset is in UTC."""
    try:
        moment = datetime.fromisoformat(text)
        if not EARLIEST <= moment.year <= LATEST:
            raise ValueError(text)
    except ValueError as error:
        message = f"must be a time such as 2026-03-01T06:00 or 2026-03-01T06:00+01:00, not {text!r}"
        raise argparse.ArgumentTypeError(message) from error
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def of_each(
    kind: str, ids: Iterable[int], by_id: Mapping[int, T], do: Callable[[T], tuple[Outcome, Row]], *more_columns: str
) -> Answer:
    """Apply `do` to each of these rows independently. The worst outcome decides the exit code.

    `more_columns` are the columns that `do` may return besides the outcome. They are null in rows without them.
    """
    rows: list[dict[str, Any]] = []
    # An id that is given twice counts once.
    for id in dict.fromkeys(ids):
        outcome, more = do(by_id[id]) if id in by_id else (Outcome.NOT_FOUND, {})
        rows.append({"id": id, "result": outcome, **dict.fromkeys(more_columns), **more})
    columns = dict.fromkeys(name for row in rows for name in row)
    return Answer({f"{kind}s": rows}, table(rows, *columns), exit_of({row["result"] for row in rows}))


def exit_of(outcomes: Set[Outcome]) -> Exit:
    otherwise = Exit.REFUSED if outcomes - DONE else Exit.DONE
    return next((code for outcome, code in _WORST_FIRST if outcome in outcomes), otherwise)


def events_about(kind: str, id: int, most: int) -> list[dict[str, Any]]:
    """Return the latest events of a row, oldest first."""
    columns = ("sequence", "at", "kind", "from_status", "to_status", "claim_token", "actor", "message", "data")
    events = Event.objects.about(kind, id).order_by("-sequence")
    return list(events.values(*columns)[:most])[::-1]


def as_json(data: object) -> str:
    return json.dumps(data, cls=Encoder, indent=2)


def table(rows: Sequence[Row], *columns: str) -> str:
    """Format rows as aligned columns with a header. Without rows, return "None."."""
    if not rows:
        return "None."
    lines = [[name.replace("_", " ").upper() for name in columns]]
    for row in rows:
        texts = [clean(" ".join(_text(row.get(name)).split())) for name in columns]
        lines.append([text if len(text) <= WIDEST_CELL else f"{text[: WIDEST_CELL - 1]}…" for text in texts])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)
    return "\n".join(line.rstrip() for line in padded)


def fields(row: Row) -> str:
    """Format a row with one line per value. Leave out empty values."""
    texts = {name.replace("_", " "): _text(value) for name, value in row.items() if value not in (None, "")}
    width = max(map(len, texts))
    indent = f"\n{' ' * (width + 2)}"
    return "\n".join(
        f"{name:{width}}  {indent.join(clean(line) for line in text.splitlines())}" for name, text in texts.items()
    )


def history(events: Iterable[Row]) -> str:
    return table(list(events), "sequence", "at", "kind", "to_status", "actor", "message")


def clean(text: str) -> str:
    """Escape control characters. A terminal would obey them, and names and messages come from anywhere."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text)


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
