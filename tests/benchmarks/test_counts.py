"""What ADE asks of the database, of memory and of the processor for the things that people do most.

`counts.json` has the numbers. A change that makes one of them worse must say so by writing the file again with
`make counts`; one that makes it better should.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import pytest
from django.conf import settings
from django.db import connection
from django.urls import reverse

from benchmarks.processes import resident_bytes
from documents.models import Document
from documents.reader_sessions import SESSIONS
from runs import lifecycle as runs
from tests.benchmarks.counting import counted
from tests.documents.conftest import places, slot  # noqa: F401  # fixtures
from tests.documents.processing import TXT, add, process
from tests.factories import BuildFactory, ConfigurationFactory, DocumentFactory, RunFactory, UserFactory
from tests.processes import database_url
from tests.runs.engine.conftest import lane, storage, witness_environment  # noqa: F401  # fixtures
from tests.stepping import until
from work.models import Worker

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long(seconds=15)]

FILE = Path(__file__).with_name("counts.json")
IS_WRITING = "ADE_WRITE_COUNTS" in os.environ
OWNER = "w1@here:101:boot1"
FIELDS = [{"name": "total", "value": "12.50", "position": 0, "step": "read"}]
# Figures that are no counts vary with the version of Python and with the machine.
MEMORY_BOUND, PROCESSOR_BOUND = 1.3, 2.0


@pytest.fixture
def compare():
    """Return a function that compares figures with those of the file, or writes them into it."""

    def compare(name, found, bound=1.0):
        kept = json.loads(FILE.read_text())
        before = kept.setdefault(connection.vendor, {}).get(name)
        if IS_WRITING:
            kept[connection.vendor][name] = found
            FILE.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
            return
        assert before is not None, f"{name} is not in {FILE.name}; run `make counts`"
        worse = {unit: number for unit, number in found.items() if number > before[unit] * bound}
        assert not worse, f"{name}: {found}, before {before}; if it must be, run `make counts` and say why"

    return compare


@pytest.fixture
def configuration(workspace):
    made = ConfigurationFactory(workspace=workspace)
    BuildFactory(configuration=made, status="ready")
    return made


@pytest.fixture
def documents(workspace):
    return DocumentFactory.create_batch(110, workspace=workspace, status="processed")


def test_a_run(compare, configuration, documents):
    # Statements are compiled and prepared when they are used for the first time.
    runs.submit(configuration, documents.pop(), actor="olga")
    runs.succeed(runs.claim_next_run(OWNER), fields=FIELDS)

    with counted() as submission:
        runs.submit(configuration, documents.pop(), actor="olga")
    with counted() as claim:
        held = runs.claim_next_run(OWNER)
    with counted() as end:
        assert runs.succeed(held, fields=FIELDS)
    with counted() as together:
        runs.submit_many(configuration, documents[:100], actor="olga")

    compare("submission of a run", dict(submission))
    compare("claim of a run", dict(claim))
    compare("end of a run", dict(end))
    compare("submission of 100 runs", dict(together))


def test_a_run_in_a_warm_engine(compare, lane, settings):  # noqa: F811  # a fixture
    settings.ADE_WARM_ENGINES = True
    lane.execute("field:a=1")
    lane.submit("field:a=1")

    with counted() as execution:
        lane.run_once()

    compare("run in a warm engine", dict(execution))


def test_a_document(compare, slot, workspace):  # noqa: F811  # a fixture
    add(b"Dear Ms Example,\n\nthe apples arrived.\n", TXT, "first.txt", workspace)
    process(slot)
    SESSIONS.close()

    with counted() as whole:
        add(b"Dear Ms Example,\n\nthe pears arrived.\n", TXT, "second.txt", workspace)
        process(slot)

    # How often its progress is written depends on the time that the stages take.
    compare("document of one page", dict(whole), bound=1.1)


@pytest.mark.parametrize("page", ["dashboard", "runs", "run", "documents", "document", "jobs", "workers"])
def test_a_page(compare, client, workspace, configuration, page):
    run = RunFactory(configuration=configuration, input_document__workspace=workspace)
    ids = {"run": [run.pk], "document": [run.input_document_id]}.get(page, [])
    client.force_login(UserFactory(is_superuser=True, is_staff=True))
    path = reverse(f"console:{page}", args=ids)
    assert client.get(path).status_code == 200

    with counted() as view:
        client.get(path)

    compare(f"page {page}", {"statements": view["statements"]})


def test_the_processor(compare, configuration, documents):
    def run():
        runs.submit(configuration, documents.pop(), actor="olga")
        runs.succeed(runs.claim_next_run(OWNER), fields=FIELDS)

    def query():
        assert Document.objects.filter(pk=documents[0].pk).values_list("pk", flat=True).first()

    run()
    query()
    # Whatever else the machine does slows both, so that their ratio stays.
    rounds = [_processor_time(run, 10) / _processor_time(query, 100) for _ in range(10)]

    compare("processor for a run", {"queries": round(10 * median(rounds), 1)}, bound=PROCESSOR_BOUND)


def _processor_time(act, times):
    began = time.process_time()
    for _ in range(times):
        act()
    return time.process_time() - began


def test_the_memory_of_an_idle_worker(compare, tmp_path):
    own = {"ADE_VAR_DIR": str(tmp_path), "DATABASE_URL": database_url(), "ADE_SCHEDULES": "false"}
    command = [sys.executable, "manage.py", "worker", "--name", "idle"]
    # It is not forked from this process or from a fork server, with which it would share its memory.
    with subprocess.Popen(command, cwd=settings.BASE_DIR, env=os.environ | own, stderr=subprocess.DEVNULL) as worker:
        try:
            until(lambda: Worker.objects.filter(name="idle", heartbeat_at__isnull=False).exists())
            megabytes = resident_bytes(worker.pid) >> 20
        finally:
            worker.terminate()

    compare("memory of an idle worker", {"megabytes": megabytes}, bound=MEMORY_BOUND)
