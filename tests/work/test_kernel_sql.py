"""docs/kernel-sql.txt has the finished statements of the kernel, so that people can read them whole.

`make samples` writes the file again.
"""

import os
import re
import textwrap

import django
import pytest
from django.conf import settings
from django.db import connection

from runs import lifecycle as runs
from runs.models import Run
from tests.factories import W1, BuildFactory, RunFactory, claim_of
from work import clock, lifecycle
from work.changes import EventDraft
from work.sql import returning

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.only_on(*returning.FAST_VENDORS),
    # Django writes the candidates of a claim, and another version may write them in another way.
    pytest.mark.skipif(django.VERSION[:2] != (5, 2), reason="the file has the statements of Django 5.2"),
]

FILE = settings.BASE_DIR / "docs" / "kernel-sql.txt"
IS_WRITING = "ADE_WRITE_SAMPLES" in os.environ
WIDTH = 118
WORDS = "SELECT|FROM|WHERE|SET|RETURNING|INNER JOIN|ORDER BY|LIMIT|UNION|VALUES|AND|moved|written|earlier|INSERT|UPDATE"
CLAUSE = re.compile(rf" (?=(?:{WORDS})\b)|(?<=\()(?=(?:SELECT|INSERT|UPDATE)\b)")
TITLES = {"postgresql": "PostgreSQL", "sqlite": "SQLite"}
INTRODUCTION = """\
The statements with which ADE's kernel writes the life of a run. Each %s is a parameter.
`make samples` writes this file, and tests/work/test_kernel_sql.py compares it. The reasons are in
docs/decisions/0014-prepared-statements.md. SQLite takes the statements of one change in one transaction, in the given
order.
"""


def test_the_file_has_the_statements_of_this_database(monkeypatch):
    monkeypatch.setattr(returning, "_statements", {})
    text = "\n\n".join(f"-- {what}\n{sql}" for what, sql in statements())
    sections = dict(re.findall(r"^=== (\w+) ===\n\n(.*?)\n*(?=^===|\Z)", kept(), re.DOTALL | re.MULTILINE))

    if IS_WRITING:
        sections[TITLES[connection.vendor]] = text
        parts = [f"=== {title} ===\n\n{sections.get(title, '')}\n" for title in TITLES.values()]
        FILE.write_text("\n".join([INTRODUCTION, *parts]))
    else:
        assert text == sections[TITLES[connection.vendor]], "the statements have changed; run `make samples`"


def kept():
    return FILE.read_text() if FILE.exists() else ""


def statements():
    """Make the changes of a run, and yield each with the statements that it needed."""
    earlier, failing, running = (RunFactory(status=status) for status in ("succeeded", "running", "running"))
    configuration, document = earlier.configuration, earlier.input_document
    yield from new("")
    runs.submit(configuration, document, actor="olga")
    yield from new("submit a run")
    runs.submit_many(configuration, [document, document], actor="olga")
    yield from new("submit several runs")
    claim = runs.claim_next_run(W1)
    yield from new("claim the next run")
    lifecycle.record_process(claim, {"pid": 7})
    yield from new("store the process that does the work")
    lifecycle.record_many(claim, [line()])
    yield from new("write a batch of events")
    claim.pending_events = lambda: [line()]
    runs.succeed(claim)
    yield from new("end the run as succeeded, with the events that wait")
    runs.fail(claim_of(failing), "ENGINE_FAILED", "exit code 1")
    yield from new("end a run as failed")
    runs.cancel(running, actor="olga")
    yield from new("ask the worker of a run to cancel it")
    runs.stop(claim_of(running))
    yield from new("end the run as cancelled")
    runs.cancel(Run.objects.filter(status="queued").first(), actor="olga")
    yield from new("cancel a run that waits")
    BuildFactory()
    yield from new("create a build")


def new(what):
    """Yield the statements that have been made since the last call; without `what`, forget them."""
    made, returning._statements = list(returning._statements.values()), {}
    if what:
        parts = [sql for each in made for sql in (each.sql, each.earlier, each.event_sql) if sql]
        yield what, ";\n".join(map(pretty, parts))


def line():
    return EventDraft("LOG", clock.now(), W1, "a line")


def pretty(sql):
    """Break a statement before its clauses, and indent by parentheses."""
    lines, depth = [], 0
    for part in CLAUSE.split(sql):
        indent = "  " * depth
        lines += textwrap.wrap(
            part, WIDTH, initial_indent=indent, subsequent_indent=f"{indent}    ", break_on_hyphens=False
        )
        depth += part.count("(") - part.count(")")
    return "\n".join(lines)
