"""Extra sections in the report of a failed test: the load of the machine, the logs of the test's processes, and the
last events in its database.
"""

import os
from pathlib import Path

from django.db import DatabaseError

from work.models import Event

LAST_CHARACTERS = 4000
LAST_EVENTS = 30


def sections(item, when):
    yield "Load of the machine", Path("/proc/loadavg").read_text().strip() + f" on {os.cpu_count()} processors"
    arguments = getattr(item, "funcargs", {})
    if programs := arguments.get("programs"):
        for number, program in enumerate(programs.started):
            yield f"Log of process {number}, {program}", program.logged()[-LAST_CHARACTERS:]
    # After the test the database is empty and blocked.
    if when == "call" and {"db", "transactional_db"} & set(item.fixturenames):
        yield "Last events", last_events()


def last_events():
    try:
        events = list(Event.objects.order_by("-id")[:LAST_EVENTS])
    except DatabaseError as error:
        return f"The database does not answer: {error}"
    return "\n".join(
        f"{event.at:%H:%M:%S.%f} {event.subject_kind} {event.subject_id} {event.kind}"
        f" {event.from_status} -> {event.to_status} {event.actor} {event.message[:200]}"
        for event in reversed(events)
    )
