"""The output and events of an engine: made storable, within limits, and never a reason to fail a run that worked."""

import re

import psutil
import pytest

from runs import engine_session
from runs.models import Run
from tests.factories import events_of
from tests.runs.engine.running import each_level, error_of, field, lines
from tests.stepping import until

pytestmark = [pytest.mark.once, pytest.mark.long, pytest.mark.usefixtures("way")]

MB = 1 << 20


@each_level
def test_output_without_end_is_cut_and_the_run_is_as_good(lane, level):
    run = lane.execute("say:first", f"spam:{32 * MB}", "say:last", "field:a=1")

    assert error_of(run) == ("succeeded", "", "")
    kept = lines(run)
    assert kept[0] == "first"
    assert kept[-1].endswith("xlast")
    assert "[more than 1,048,576 bytes of output: only the end is kept]" in kept
    assert [line for line in kept if re.fullmatch(r"\[[\d,]+ bytes omitted\]", line)]
    assert sum(map(len, kept)) < 1.1 * MB


def test_a_gigabyte_of_output_without_a_line_end_costs_the_worker_little_memory(witnesses, way, programs):
    first = witnesses.submit("field:a=1")
    worker = programs.worker(slots="run=1", ADE_WARM_ENGINES=way == "warm", ADE_LEASE_SECONDS=30)
    until(lambda: Run.objects.get(pk=first.pk).status == "succeeded")
    process = psutil.Process(worker.pid)
    before = most = process.memory_info().rss
    run = witnesses.submit(f"spam:{1 << 30}", "field:a=1")

    while Run.objects.get(pk=run.pk).status != "succeeded":
        most = max(most, process.memory_info().rss)
        assert worker.is_alive()

    assert most - before < 64 * MB
    assert Run.objects.get(pk=run.pk).fields.count() == 1


def test_output_of_any_bytes_is_stored_as_text(lane):
    run = lane.execute("binary")

    assert error_of(run) == ("succeeded", "", "")
    assert lines(run) == ["café \ufffd\ufffd nulnul \x1b[31mred\x1b[0m", "10%", "20%", "100%", "no end"]


def test_a_line_of_any_length_becomes_pieces(lane):
    run = lane.execute("long_line:100000", "say:short")

    assert "".join(lines(run)) == "y" * 100000 + "short"
    assert max(map(len, lines(run))) == 8192


@each_level
@pytest.mark.parametrize("descriptors", ["1,2", "0,1,2"])
def test_an_engine_that_closes_its_output_goes_on(lane, level, descriptors):
    run = lane.execute("say:before", f"close:{descriptors}", "sleep:0.2", "field:a=1")

    assert error_of(run) == ("succeeded", "", "")
    assert field(run, "a") == "1"
    assert lines(run) == ["before"]


def test_an_engine_that_cannot_tell_its_result_has_none(lane):
    run = lane.execute("field:a=1", "close_events:")

    assert error_of(run)[:2] == ("failed", "ENGINE_FAILED")
    assert "without reporting a result" in run.error_message
    lane.assert_well()


def test_a_log_message_of_any_length_is_kept_in_a_readable_length(lane):
    run = lane.execute("log_long:1000000", "field:a=1")

    assert error_of(run) == ("succeeded", "", "")
    (line,) = lines(run)
    assert len(line) <= 8192
    assert line.startswith("zzz")


def test_a_log_without_end_is_cut_and_the_run_is_as_good(lane):
    run = lane.execute("log_many:30000x100", "field:a=1")

    assert error_of(run) == ("succeeded", "", "")
    kept = lines(run)
    assert kept[0].startswith("0 .")
    assert kept[-1] == "[log longer than 1,048,576 characters: the rest is left out]"
    assert "database was away" not in str(kept)
    # No earlier line is lost, and the step events are stored.
    assert [int(line.split()[0]) for line in kept[:-1]] == list(range(len(kept) - 1))
    assert sum(map(len, kept)) < 1.1 * MB
    assert events_of(run).filter(kind="STEP_SUCCEEDED").count() == 3


def test_an_engine_that_tells_a_log_without_end_by_itself_is_cut_too(lane):
    line = '{"kind": "log", "step": "act", "level": "info", "message": "' + "x" * 100 + '"}'
    run = lane.execute(f"events:30000 {line}", "field:a=1")

    assert error_of(run) == ("succeeded", "", "")
    assert sum(map(len, lines(run))) < 1.1 * MB
    assert "the rest is left out]" in lines(run)[-1]
    assert "database was away" not in str(lines(run))


def test_events_past_their_limit_fail_the_run_in_these_words(lane):
    line = '{"kind": "progress", "step": "act", "done": 1, "total": 3, "more": "' + "x" * 10000 + '"}'
    run = lane.execute(f"events:2000 {line}", "field:a=1")

    assert error_of(run)[:2] == ("failed", "LIMIT_EXCEEDED")
    assert "results of the engine were unreadable, too many or too large." in run.error_message
    lane.assert_well()


def test_a_field_that_is_too_large_fails_the_run_in_these_words(lane):
    run = lane.execute("field_large:300000")

    assert error_of(run)[:2] == ("failed", "LIMIT_EXCEEDED")
    lane.assert_well()


def test_too_many_fields_fail_the_run_in_these_words(lane, monkeypatch):
    monkeypatch.setattr(engine_session, "MOST_FIELDS", 100)
    run = lane.execute("fields:101")

    assert error_of(run)[:2] == ("failed", "LIMIT_EXCEEDED")


@pytest.mark.parametrize(
    "line",
    [
        '{"kind": "result", "outcome": "rejected"}',
        '{"kind": "result", "outcome": "failed"}',
        '{"kind": "result", "outcome": "failed", "type": null, "error": null, "step": null}',
        '{"kind": "result", "outcome": "rejected", "error": "\\\\u0000"}',
        '{"kind": "result", "outcome": "failed", "type": [1], "error": {"a": "\\\\ud800"}, "step": "'
        + "s" * 5000
        + '"}',
    ],
)
def test_a_result_in_whatever_shape_is_a_failure_with_words(lane, line):
    run = lane.execute(f"event:{line}", "os_exit:0")

    assert run.status == "failed"
    assert run.failure_type in ("REJECTED", "ENGINE_FAILED", "STEP_FAILED")
    assert re.search(r"\w{3}", run.error_message)
    lane.assert_well()


@pytest.mark.parametrize(
    "field",
    [
        '"name": "a", "value": 1, "confidence": 2, "page": 1, "box": null',
        '"name": "a", "value": 1, "confidence": null, "page": 99999999999, "box": null',
        '"name": "a", "value": 1, "confidence": null, "page": 0.5, "box": null',
        '"name": "a", "value": 1, "confidence": true, "page": "x", "box": null',
        '"name": "a", "value": 1, "confidence": null, "page": null, "box": [[1]]',
        '"name": "a", "value": NaN, "confidence": null, "page": null, "box": null',
        '"name": "a", "value": 1' + "0" * 5000 + ', "confidence": null, "page": null, "box": null',
        '"name": "a", "value": ' + "[" * 5000 + "]" * 5000 + ', "confidence": null, "page": null, "box": null',
        '"value": 1',
    ],
)
def test_a_field_in_whatever_shape_fails_the_run_and_not_its_worker(lane, field):
    run = lane.execute('event:{"kind": "field", "step": "act", ' + field + "}")

    assert error_of(run)[:2] == ("failed", "LIMIT_EXCEEDED")
    lane.assert_well()


@pytest.mark.parametrize(
    "value",
    ["[" * 200 + "]" * 200, "1" + "0" * 4000, '"\\\\u0000\\\\ud800 \\\\udc00"', '{"": {"\\\\u0000": 1e308}}', "-0.0"],
)
def test_any_value_that_json_can_hold_is_stored(lane, value):
    event = '{"kind": "field", "step": "act", "name": "a", "value": ' + value
    run = lane.execute(f'event:{event}, "confidence": null, "page": 1.7, "box": [1e308, 2, 3, "4"]}}')

    assert error_of(run) == ("succeeded", "", "")
    assert run.fields.get().name == "a"
