"""Workers that are killed while they process documents (faults A7 and A8, and the fourth goal of documents)."""

import os
import re
import signal
from io import BytesIO
from pathlib import Path

import pytest

from documents import children, intake
from documents.models import DocumentProcessingJob, Stage
from tests.extractor.pdfs import long_pdf
from tests.factories import WorkspaceFactory, events_of, write
from tests.races.invariants import assert_all_hold
from tests.stepping import until
from work import clock
from work.processes.scratch import sweep

SLOTS = "stage=2"
# The goal for the worker itself, without its children.
MOST_MEGABYTES = 200
PAGES = 1000

pytestmark = pytest.mark.long


@pytest.fixture
def worker(programs, settings, tmp_path):
    settings.VAR_DIR = tmp_path / "var"
    settings.MEDIA_ROOT = settings.VAR_DIR / "media"

    def start(name="w1", **environment):
        return programs.worker(name, SLOTS, **({"ADE_VAR_DIR": settings.VAR_DIR, "DEBUG": "true"} | environment))

    return start


def receive(data, name="letter.txt"):
    return intake.receive(WorkspaceFactory(), BytesIO(data), name, "", "olga")


def job_of(document):
    return DocumentProcessingJob.objects.get(document=document)


def ended(document, seconds=600):
    until(lambda: job_of(document).status in ("COMPLETED", "FAILED"), seconds=seconds)
    return job_of(document)


@pytest.mark.parametrize(("point", "stage"), [("job.analysed", "extract"), ("job.embedded", "embed")])
def test_a7_a_job_whose_worker_is_killed_goes_on_where_it_was(worker, point, stage):
    document = receive(b"Of apples.\n")
    first = worker(ADE_FAILPOINTS=f"{point}:kill9")
    assert first.code() == -signal.SIGKILL, first.logged()

    worker()
    job = ended(document)

    assert (job.status, job.attempts, job.error_log) == ("COMPLETED", 0, "")
    losses = dict(Stage.objects.filter(job=job).values_list("name", "losses"))
    assert losses == {"extract": 0, "embed": 0, "publish": 0} | {stage: 1}
    # Finished stages are reused, so nothing is created twice.
    assert document.chunks.count() == 1
    assert_all_hold(quiet=True)


# Slow, because nine workers have to die.
def test_a8_a_document_that_kills_each_of_its_workers_fails_and_others_proceed(worker):
    poison = receive(b"Kills whoever reads it.\n")
    deaths = 0

    def is_over(dying):
        job = job_of(poison)
        assert job.attempts <= job.max_attempts
        if job.status == "PENDING" and job.attempts:
            write(job, next_attempt_at=clock.now())
        return not dying.is_alive() or job.status == "FAILED"

    while job_of(poison).status != "FAILED":
        dying = worker(ADE_FAILPOINTS="job.analysed:kill9")
        until(lambda dying=dying: is_over(dying))
        deaths += not dying.is_alive()
        dying.kill()
    other = receive(b"Harmless.\n", "other.txt")
    worker()

    assert ended(other).status == "COMPLETED"
    job = job_of(poison)
    assert (job.attempts, job.failure_type, job.document.status) == (3, "PROCESS_TERMINATED", "failed")
    assert len(re.findall(r" attempt [123]: ", job.error_log)) == 3
    assert re.findall(r"(\d) workers were lost while processing it", job.error_log) == ["3", "6", "9"]
    assert deaths == 9
    assert_all_hold(quiet=True)


def test_half_of_a_long_document_is_not_read_again_when_its_worker_is_killed(worker, tmp_path):
    file = long_pdf(tmp_path / "long.pdf", PAGES, words=200)
    document = receive(Path(file).read_bytes(), "long.pdf")
    stages = Stage.objects.filter(job__document=document, name="extract")
    first = worker()
    until(lambda: stages.filter(status="DONE").count() >= 15, seconds=600)

    first.kill()
    done = set(stages.filter(status="DONE").values_list("segment", flat=True))
    second = worker()
    job = ended(document)

    assert (job.status, job.attempts) == ("COMPLETED", 0)
    document.refresh_from_db()
    assert document.pages == PAGES
    assert document.chunks.values("page").distinct().count() == PAGES
    again = [stage.segment for stage in stages if stage.claim_token > 1]
    assert len(again) <= 2
    assert not done.intersection(again)
    assert {events_of(stage).filter(kind="STAGE_DONE").count() for stage in stages} == {1}
    assert _peak_megabytes(second) < MOST_MEGABYTES
    assert_all_hold(quiet=True)
    second.kill()
    assert sweep(children.root()) >= 1
    assert os.listdir(children.root()) == [".locks"]


def _peak_megabytes(program):
    (kilobytes,) = re.findall(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{program.pid}/status").read_text())
    return int(kilobytes) / 1024
