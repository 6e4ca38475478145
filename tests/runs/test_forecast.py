from datetime import timedelta

import pytest

from runs import forecast, queue
from tests.factories import BuildFactory, ConfigurationFactory, DocumentFactory, RunFactory, force_status, write
from work import boots, clock, draining

pytestmark = pytest.mark.django_db


@pytest.fixture
def worker():
    return boots.register("w1", "boot1", {"run": 2})


@pytest.fixture
def took(configuration, build):
    """Return a function that creates succeeded runs of this configuration that took this many seconds."""

    def took(*seconds, **values):
        for each in seconds:
            run = force_status(RunFactory(**({"configuration": configuration} | values)), "succeeded")
            ended = clock.now()
            began = ended - timedelta(seconds=each)
            write(run, created_at=began, started_at=began, finished_at=ended)

    return took


def seconds_until(told):
    return (told.estimated_start - clock.now()).total_seconds()


def test_with_a_free_slot_it_begins_now(worker, configuration, took):
    took(10, 20, 90)

    told = forecast.of(RunFactory(configuration=configuration))

    assert (told.position, told.position_in_words) == (1, "1")
    assert -5 < seconds_until(told) <= 0
    assert told.based_on == (
        "runs ahead of it: 0; threads of live workers: 2; 20.0 s per run"
        " (median of the last 3 successful runs of its configuration)"
    )


def test_those_ahead_take_the_slots_first(worker, configuration, took):
    took(20)
    for _ in range(4):
        RunFactory(configuration=configuration)

    told = forecast.of(RunFactory(configuration=configuration))

    assert told.position == 5
    assert 35 < seconds_until(told) <= 40


def test_what_is_running_leaves_its_slot_when_it_has_taken_as_long_as_others(worker, configuration, took):
    took(60)
    for _ in range(2):
        began = clock.now() - timedelta(seconds=40)
        write(RunFactory(status="running", owner=worker.owner), created_at=began, started_at=began)

    assert 15 < seconds_until(forecast.of(RunFactory(configuration=configuration))) <= 20


def test_it_waits_for_the_others_of_its_document(worker, configuration, document, took):
    took(30)
    RunFactory(configuration=configuration, input_document=document)
    RunFactory(configuration=configuration, input_document=document)

    told = forecast.of(RunFactory(configuration=configuration, input_document=document))

    assert 55 < seconds_until(told) <= 60


def test_those_that_wait_for_another_run_of_their_document_are_ahead_too(worker, configuration, took):
    took(30)
    documents = [DocumentFactory(workspace=configuration.workspace, status="processed") for _ in range(2)]
    for _ in range(10):
        for document in documents:
            RunFactory(configuration=configuration, input_document=document)

    told = forecast.of(RunFactory(configuration=configuration))

    # With two slots and two documents there are ten rounds of 30 s, and this run is in the eleventh.
    assert told.position == 21
    assert 295 < seconds_until(told) <= 300


def test_those_of_one_document_ahead_take_one_slot_at_a_time(worker, configuration, document, took):
    took(30)
    for _ in range(10):
        RunFactory(configuration=configuration, input_document=document)

    told = forecast.of(RunFactory(configuration=configuration))

    assert told.position == 11
    assert -5 < seconds_until(told) <= 0


def test_a_configuration_without_any_goes_by_all_others(worker, took):
    took(7)

    told = forecast.of(RunFactory(configuration=ConfigurationFactory()))

    assert told.based_on.endswith("7.0 s per run (median of the last 1 successful runs of any configuration)")


def test_nobody_can_say_without_runs_that_succeeded(worker):
    told = forecast.of(RunFactory())

    assert (told.position, told.estimated_start) == (1, None)
    assert told.based_on == "No estimate: no run has succeeded yet."


def test_nobody_can_say_without_a_worker(took):
    took(7)

    assert forecast.of(RunFactory()).based_on == "No estimate: no live worker takes runs."


def test_nobody_can_say_while_all_workers_drain(worker, took):
    took(7)
    draining.drain(worker, actor="olga")

    assert forecast.of(RunFactory()).based_on == "No estimate: all workers that take runs are draining."


def test_nobody_can_say_when_it_will_go_on(worker, took):
    took(7)
    run = RunFactory()
    queue.pause(actor="olga")

    told = forecast.of(run)

    assert (told.position, told.estimated_start) == (1, None)
    assert told.based_on == "No estimate: the run queue is paused."


def test_nobody_can_say_when_its_build_will_be_ready(worker, took):
    took(7)

    assert forecast.of(RunFactory(build=BuildFactory())).based_on == "No estimate: its build is not ready."


def test_what_is_not_queued_has_no_place():
    told = forecast.of(RunFactory(status="running"))

    assert (told.status, told.position, told.estimated_start) == ("running", None, None)
