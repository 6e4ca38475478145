"""All processes that an engine forks end with it, with its run, and with its worker.

Tests that engines of one document never overlap, and that kill workers at every point of a run, are in tests/workers.
"""

import os
import signal

import pytest

from runs.models import Run
from tests.runs.engine.running import LEVELS, each_level, error_of, named
from tests.stepping import until

pytestmark = [pytest.mark.once, pytest.mark.usefixtures("way"), pytest.mark.long]

# Long enough that no test waits for its end.
LEASE = 60
FAMILY = ("fork", "setsid", "double")
# A PATH without bubblewrap.
NO_PATH = "/nowhere"


@pytest.fixture(params=LEVELS)
def path(request):
    """A worker finds bubblewrap through its PATH."""
    return os.environ["PATH"] if request.param == "bubblewrap" else NO_PATH


def ended(run):
    return Run.objects.get(pk=run.pk).status in Run.TERMINAL


@pytest.mark.parametrize("deeds", [FAMILY, ("stubborn", *FAMILY), ("stubborn", *FAMILY, "stop")], ids="+".join)
def test_a_killed_worker_takes_its_engine_along_with_all_that_it_forked(witnesses, way, path, programs, token, deeds):
    run = witnesses.submit(f"name:{token}", *deeds, "hang")
    following = witnesses.submit("field:a=1", document=run.input_document)
    settings = {"ADE_WARM_ENGINES": way == "warm", "ADE_LEASE_SECONDS": LEASE, "PATH": path}
    worker = programs.worker("w1", slots="run=1", **settings)
    # The engine and the three processes that it forked directly or indirectly; the middle process of `double` may still
    # exist.
    until(lambda: len(named(token)) >= 1 + len(FAMILY))
    until(lambda: Run.objects.get(pk=run.pk).process)

    worker.send(signal.SIGKILL)
    # No other worker is running that could end them.
    until(lambda: not named(token))

    # The next worker with this name takes up the run at once.
    assert worker.code() == -signal.SIGKILL
    rewrite(following)
    programs.worker("w1", slots="run=1", **settings)
    until(lambda: ended(run) and ended(following))
    run.refresh_from_db()
    following.refresh_from_db()
    assert error_of(run)[:2] == ("failed", "PROCESS_TERMINATED")
    assert error_of(following) == ("succeeded", "", "")
    assert following.started_at >= run.finished_at


def rewrite(run):
    """Change the deeds of the document's next run."""
    with open(run.input_document.file.path, "w") as file:
        file.write("field:a=1")


@each_level
@pytest.mark.parametrize("deed", FAMILY)
@pytest.mark.parametrize("end", ["raise:no", "os_exit:0", "kill:9", "segv"])
def test_a_run_that_fails_ends_all_that_it_forked(lane, level, token, deed, end):
    run = lane.execute(f"name:{token}", "stubborn", deed, end)

    assert run.status == "failed"
    assert not named(token)


@each_level
def test_a_run_ends_by_the_hundred_what_it_forked(lane, level, token):
    run = lane.execute(f"name:{token}", "bomb:200", "field:a=1")

    assert error_of(run) == ("succeeded", "", "")
    assert not named(token)
