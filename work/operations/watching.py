"""`manage.py NOUN why` and `manage.py NOUN logs`, for kinds of work that have a queue and a log."""

import time
from collections.abc import Iterator
from contextlib import suppress
from json import dumps
from typing import Any, ClassVar

from django.core.exceptions import ObjectDoesNotExist

from work.models import Event
from work.operations.commands import AddVerb, Answer, NounCommand, Row, add_ids, clean, fields, identifier, not_found
from work.operations.encoding import Encoder
from work.state_machine import StateMachine
from work.why import Explanation

STREAMS = ("stdout", "stderr", "log")
LOOK_SECONDS = 0.5
# Log lines per query.
BATCH = 1000


class WatchedCommand(NounCommand):
    states: ClassVar[StateMachine]
    terminal: ClassVar[frozenset[str]]

    def explain(self, id: int) -> Explanation:
        raise NotImplementedError

    def add_watching(self, add: AddVerb) -> None:
        name = self.states.model._meta.verbose_name
        add_ids(add("why", self.why, f"Explain what a queued {name} waits for, and since when."))
        logs = add("logs", self.logs, f"Print the log of a {name}, oldest line first.")
        add_ids(logs)
        logs.add_argument(
            "--follow", action="store_true", help=f"continue until the {name} has ended; with --json, one line each"
        )
        logs.add_argument(
            "--after", metavar="SEQUENCE", type=identifier, default=0, help="only lines after this sequence number"
        )
        logs.add_argument("--stream", choices=STREAMS, help="only this stream")

    def handle(self, *args: Any, **options: Any) -> None:
        if not options.get("follow"):
            super().handle(*args, **options)
            return
        # Ctrl-C is the normal way to stop following.
        with suppress(KeyboardInterrupt):
            self.follow(**options)

    def why(self, *, id: int, **_: Any) -> Answer:
        try:
            explanation = self.explain(id)
        except ObjectDoesNotExist as error:
            raise self._not_found(id) from error
        return Answer(explanation.to_json(), in_words(explanation))

    def logs(self, *, id: int, after: int, stream: str | None, **_: Any) -> Answer:
        status = self._status(id)
        entries = [entry for entry in self._log(id, after) if stream in (None, entry["stream"])]
        text = "\n".join(line for entry in entries for line in _lines(entry))
        pruned_at = self.states.rows.values_list("pruned_at", flat=True).get(pk=id) if self.states.pruned else None
        none = f"None. The log was pruned on {pruned_at:%Y-%m-%d %H:%M} UTC." if pruned_at else "None."
        return Answer({"id": id, "status": status, "logs": entries, "pruned_at": pruned_at}, text or none)

    def follow(self, *, id: int, after: int, stream: str | None, json: bool = False, **_: Any) -> None:
        while True:
            # Read the status before the log, so that the last query finds everything that was logged before the end.
            has_ended = self._status(id) in self.terminal
            for entry in self._log(id, after):
                after = entry["sequence"]
                if stream in (None, entry["stream"]):
                    for line in [dumps(entry, cls=Encoder)] if json else _lines(entry):
                        self.stdout.write(line)
            self.stdout.flush()
            if has_ended:
                return
            time.sleep(LOOK_SECONDS)

    def _status(self, id: int) -> str:
        status = self.states.rows.filter(pk=id).values_list("status", flat=True).first()
        if status is None:
            raise self._not_found(id)
        return str(status)

    def _not_found(self, id: int) -> Exception:
        return not_found(self.states.kind, id, f"`manage.py {self.states.kind} list` shows them")

    def _log(self, id: int, after: int) -> Iterator[Row]:
        """Yield log lines by sequence number. Numbers have no gaps, so new lines always come after the lines read."""
        events = Event.objects.about(self.states.kind, id).filter(kind="LOG").order_by("sequence")
        while batch := list(events.filter(sequence__gt=after)[:BATCH]):
            after = batch[-1].sequence
            for event in batch:
                data = event.data or {}
                yield {
                    "sequence": event.sequence,
                    "at": event.at,
                    "claim_token": event.claim_token,
                    "stream": data.get("stream", "log"),
                    "step": data.get("step") or None,
                    "message": event.message,
                }


def in_words(explanation: Explanation) -> str:
    gates = {gate.name: f"{'BLOCKING' if gate.holds else 'passed  '}  {gate.message}" for gate in explanation.gates}
    text = clean(explanation.message)
    return f"{text}\n\n{fields(gates)}" if gates else text


def _lines(entry: Row) -> Iterator[str]:
    step = f"{clean(str(entry['step']))}: " if entry["step"] else ""
    head = f"{entry['sequence']:>5}  {entry['at']:%H:%M:%S}  {clean(str(entry['stream'])):6}  {step}"
    # Expand tabs, split lines at the carriage returns of progress bars, and escape all other control characters.
    return (head + clean(line.expandtabs()) for line in entry["message"].splitlines() or [""])
