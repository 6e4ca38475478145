"""Each run has exactly one clear outcome, whatever its engine does, and the next run is not affected."""

import pytest

from tests.factories import told
from tests.runs.engine.running import data_of, each_level, error_of, field, lines, named, way_of

pytestmark = [pytest.mark.once, pytest.mark.long, pytest.mark.usefixtures("way")]


@each_level
def test_a_run_keeps_what_its_steps_found_made_and_said(lane, level, way):
    run = lane.execute("field:total=42", "artifact:out/a.txt=hello", "say:printed", "log:logged")

    assert error_of(run) == ("succeeded", "", "")
    assert field(run, "total") == "42"
    assert [(a.name, a.size_bytes, a.content_type) for a in run.artifacts.all()] == [("out/a.txt", 5, "text/plain")]
    assert lines(run) == ["printed", "logged"] or lines(run) == ["logged", "printed"]
    assert [kind for kind in told(run) if kind.startswith("STEP")] == ["STEP_STARTED", "STEP_SUCCEEDED"] * 3
    assert way_of(run) == way


def test_a_step_that_raises_twice_fails_its_run_in_its_words(lane):
    run = lane.execute("field:a=1", "artifact:a.txt=x", "raise:no total on page 3")

    assert error_of(run) == ("failed", "STEP_FAILED", "step act: ValueError: no total on page 3")
    assert [kind for kind in told(run) if kind.startswith("STEP")] == [
        "STEP_STARTED", "STEP_SUCCEEDED", "STEP_STARTED", "STEP_RETRIED", "STEP_FAILED"
    ]  # fmt: skip
    assert any("do_raise" in line for line in lines(run))
    lane.assert_well(run.input_document)


def test_a_second_attempt_may_succeed_and_nothing_of_the_first_is_kept(lane):
    run = lane.execute("field:a=1", "artifact:a.txt=x", "raise_once:not yet")

    assert error_of(run) == ("succeeded", "", "")
    assert "STEP_RETRIED" in told(run)
    assert run.fields.count() == run.artifacts.count() == 1


def test_a_rejected_document_is_not_tried_again(lane):
    run = lane.execute("reject:this is no invoice")

    assert error_of(run) == ("failed", "REJECTED", "this is no invoice")
    assert "STEP_RETRIED" not in told(run)
    lane.assert_well()


@pytest.mark.parametrize("code", [0, 3])
def test_a_step_that_calls_sys_exit_fails_its_run(lane, code):
    run = lane.execute(f"exit:{code}")

    said = f"The step called sys.exit({code}). It must return or raise an exception instead."
    assert error_of(run) == ("failed", "STEP_FAILED", f"step act: SystemExit: {said}")
    lane.assert_well()


@each_level
@pytest.mark.parametrize("code", [0, 3])
def test_an_exit_without_a_result_is_no_success(lane, level, code):
    run = lane.execute("field:a=1", "artifact:a.txt=x", f"os_exit:{code}")

    assert error_of(run)[:2] == ("failed", "ENGINE_FAILED")
    assert run.error_message.startswith(f"The engine exited with code {code} after ")
    assert run.error_message.endswith(" s in step act, without reporting a result.")
    lane.assert_well(run.input_document)


@each_level
def test_a_crash_in_c_fails_the_run_and_says_where(lane, level):
    run = lane.execute("segv")

    assert error_of(run)[:2] == ("failed", "ENGINE_FAILED")
    assert run.error_message.startswith("The engine was killed by SIGSEGV after ")
    assert "in step act" in run.error_message
    assert any("do_segv" in line for line in lines(run))
    lane.assert_well(run.input_document)


@each_level
def test_an_engine_that_the_kernel_kills_fails_its_run_once(lane, level):
    run = lane.execute("kill:9")

    assert error_of(run)[:2] == ("failed", "ENGINE_FAILED")
    expected = "The engine was killed by SIGKILL (by the kernel because memory ran out, or by a user) after "
    assert run.error_message.startswith(expected)
    assert "in step act" in run.error_message
    assert told(run).count("STEP_STARTED") == 2
    lane.assert_well(run.input_document)


def test_a_result_of_success_that_is_told_by_a_process_that_then_dies_is_no_success(lane):
    run = lane.execute('event:{"kind": "result", "outcome": "succeeded"}', "kill:9")

    assert error_of(run)[:2] == ("failed", "ENGINE_FAILED")
    lane.assert_well()


def test_threads_and_exit_handlers_do_not_keep_a_run_that_has_told_its_result(lane, settings):
    settings.ADE_RUN_TIMEOUT_SECONDS = 200
    run = lane.execute("thread", "atexit")

    assert error_of(run) == ("succeeded", "", "")
    assert data_of(run, "RUN_SUCCEEDED")["seconds"] < 100


def test_a_step_that_forks_and_returns_in_both_is_one_run(lane):
    run = lane.execute("return_twice", "field:a=1", "log:once", "say_closing:")

    assert error_of(run) == ("succeeded", "", "")
    assert run.fields.count() == 1
    assert sorted(lines(run)) == ["closing", "once"]


@each_level
@pytest.mark.parametrize("deed", ["fork", "setsid", "double"])
def test_a_run_ends_at_once_though_what_it_forked_holds_its_pipes(lane, level, deed, token):
    run = lane.execute(f"name:{token}", "field:a=1", deed)

    assert error_of(run) == ("succeeded", "", "")
    assert field(run, "a") == "1"
    assert not named(token)


def test_what_an_engine_tells_in_other_words_than_ours_fails_its_run(lane):
    run = lane.execute("garbage", "field:a=1")

    assert error_of(run)[:2] == ("failed", "LIMIT_EXCEEDED")
    assert "results of the engine were unreadable" in run.error_message
    lane.assert_well()
