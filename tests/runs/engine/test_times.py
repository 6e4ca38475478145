"""The time limit of a run, and its end: measured by the monotonic clock, whatever its engine does."""

import time

import pytest

from runs import handler as runs_lane
from runs import lifecycle as runs
from runs import scratch
from runs.models import Run
from tests.factories import told
from tests.runs.engine.running import each_level, error_of, named, took
from tests.stepping import until

pytestmark = [pytest.mark.once, pytest.mark.usefixtures("way"), pytest.mark.long]


@pytest.fixture
def one_second(lane, settings, short):
    """Set a timeout of one second for runs that fork from an existing warm engine."""
    lane.assert_well()
    settings.ADE_RUN_TIMEOUT_SECONDS = 1
    yield
    settings.ADE_RUN_TIMEOUT_SECONDS = 60
    lane.assert_well()


@each_level
@pytest.mark.parametrize(
    "deeds",
    [
        ["hang"],
        ["stubborn", "hang"],
        ["stop"],
        ["close:0,1,2", "hang"],
        ["fork", "setsid", "double", "hang"],
        ["stubborn", "double", "stop", "hang"],
        ["bomb:100", "hang"],
        ["cpu:60"],
    ],
    ids=lambda deeds: "+".join(deed.partition(":")[0] for deed in deeds),
)
def test_a_run_is_ended_with_all_that_it_forked_when_its_time_is_over(level, lane, one_second, deeds, token):
    run = lane.execute(f"name:{token}", "field:a=1", "artifact:a.txt=x", *deeds)

    assert error_of(run) == ("failed", "TIMED_OUT", "Timed out after 1 s in step act.")
    # The timeout, the grace period, and an allowance for a busy machine.
    assert 0.9 < took(run) < 1 + 0.3 + 15
    assert not named(token)


def test_what_goes_before_its_engine_is_the_runs_own_time(lane, one_second, settings, monkeypatch):
    settings.ADE_RUN_TIMEOUT_SECONDS = 2
    read = runs_lane._read

    def read_slowly(claim):
        time.sleep(1.2)
        return read(claim)

    monkeypatch.setattr(runs_lane, "_read", read_slowly)
    run = lane.execute("sleep:1.2")
    monkeypatch.undo()

    assert error_of(run)[:2] == ("failed", "TIMED_OUT")
    assert took(run) < 2 + 15


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_clock_that_is_set_ends_no_run(lane, one_second, settings, monkeypatch, hours):
    settings.ADE_RUN_TIMEOUT_SECONDS = 30
    lay_out, clock = scratch.lay_out, time.time

    def set_the_clock(*arguments):
        monkeypatch.setattr(time, "time", lambda: clock() + hours * 3600)
        lay_out(*arguments)

    monkeypatch.setattr(scratch, "lay_out", set_the_clock)
    run = lane.submit("sleep:0.2")
    lane.run_once()
    monkeypatch.undo()

    assert Run.objects.get(pk=run.pk).status == "succeeded"


def test_an_engine_ends_with_the_lease_of_its_run(lane, short, settings):
    """It ends even without its worker: the engine's guard measures the time."""
    lane.assert_well()
    run = lane.submit("stubborn", "hang")
    settings.ADE_LEASE_SECONDS = 1
    began = time.monotonic()
    lane.run_once()

    assert time.monotonic() - began < 1 + 15
    # Recovery ends the run after its lease has expired; its former holder cannot.
    assert Run.objects.get(pk=run.pk).status == "running"


@pytest.mark.parametrize("deeds", [["hang"], ["double", "hang"]], ids=["hang", "double"])
def test_a_cancel_ends_a_run_soon(witnesses, way, programs, token, deeds):
    run = witnesses.submit("log:at work", f"name:{token}", *deeds)
    worker = programs.worker(slots="run=1", ADE_WARM_ENGINES=way == "warm", ADE_LEASE_SECONDS=30)
    until(lambda: named(token))
    time.sleep(0.2)

    assert runs.cancel(run, actor="olga") == "running"
    began = time.monotonic()
    until(lambda: Run.objects.get(pk=run.pk).status != "running")

    assert Run.objects.get(pk=run.pk).status == "cancelled"
    assert time.monotonic() - began < 15
    assert not named(token)
    assert told(run)[-1] == "RUN_CANCELLED"
    again = witnesses.submit("field:a=1", document=run.input_document, rewrite=True)
    until(lambda: Run.objects.get(pk=again.pk).status == "succeeded")
    assert worker.is_alive()
