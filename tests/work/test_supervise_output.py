import json
import os
import time
from itertools import pairwise

import pytest

from tests.work.supervised import BUSY_SECONDS, SHORT, Helper, Said, each_level, gone, run, run_until, witness
from work.processes import supervise
from work.processes.output import BATCH_LINES, EVENT_BYTES, LINE_CHARACTERS, TAIL_BYTES, Events, Lines, Output
from work.processes.supervise import Limits, Line

pytestmark = pytest.mark.once


def lines_of(*chunks):
    lines = Lines()
    return [text for chunk in chunks for text in lines.feed(chunk)] + lines.feed(b"", final=True)


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        ([b"one\ntwo\n"], ["one", "two"]),
        ([b"no end"], ["no end"]),
        ([b"one", b" line\n"], ["one line"]),
        ([b"a\n\nb\n"], ["a", "", "b"]),
        ([b"10%\r20%\r100%\n"], ["10%", "20%", "100%"]),
        ([b"dos\r\nends\r\n"], ["dos", "ends"]),
        ([b"dos\r", b"\nin two\r", b"\n"], ["dos", "in two"]),
        ([b"mac\r", b"next"], ["mac", "next"]),
        ([b"mac\r", b"", b"\nnext"], ["mac", "next"]),
        ([b"caf\xc3", b"\xa9\n"], ["café"]),
        ([b"\xff\xfe bad\n"], ["�� bad"]),
        ([b"cut \xc3"], ["cut �"]),
        ([b"nul\0 gone\0\n"], ["nul gone"]),
        ([b"\x1b[31mred\x1b[0m\n"], ["\x1b[31mred\x1b[0m"]),
        ([b"not\x0ba\x0cline\xe2\x80\xa8end\n"], ["not\x0ba\x0cline\u2028end"]),
        ([], []),
    ],
)
def test_bytes_become_lines(chunks, expected):
    assert lines_of(*chunks) == expected


def test_a_long_line_is_cut_between_characters():
    text = "é" * (2 * LINE_CHARACTERS + 10)

    pieces = lines_of(text.encode())

    assert [len(piece) for piece in pieces] == [LINE_CHARACTERS, LINE_CHARACTERS, 10]
    assert "".join(pieces) == text


def test_a_line_without_end_is_given_on_before_its_end():
    lines = Lines()

    assert sum(len(lines.feed(b"x" * 1000)) for _ in range(100)) == 100_000 // LINE_CHARACTERS


def delivered(output_bytes, *writes):
    said, sizes = [], []

    def deliver(lines):
        said.extend(lines)
        sizes.append(len(lines))

    output = Output(output_bytes, deliver)
    for stream, data in writes:
        output.feed(stream, data)
    output.end()
    return output, said, sizes


def test_the_streams_do_not_mix_within_a_line():
    _, said, _ = delivered(1000, ("stdout", b"out "), ("stderr", b"err "), ("stdout", b"1\n"), ("stderr", b"2\n"))

    assert said == [Line("stdout", "out 1"), Line("stderr", "err 2")]


def test_a_batch_has_a_largest_size():
    _, said, sizes = delivered(1 << 20, ("stdout", b"x\n" * (2 * BATCH_LINES + 1)))

    assert (len(said), sizes) == (2 * BATCH_LINES + 1, [BATCH_LINES, BATCH_LINES, 1])


def test_output_up_to_the_limit_is_whole():
    output, said, _ = delivered(10, ("stdout", b"12345\n"), ("stderr", b"789\n"))

    assert (output.truncated, output.seen_bytes) == (False, 10)
    assert [line.text for line in said] == ["12345", "789"]


def test_over_the_limit_the_beginning_and_the_end_are_kept():
    middle = b"m\n" * 50_000
    output, said, _ = delivered(
        11, ("stdout", b"beginning\n"), ("stdout", middle), ("stdout", b"last out\n"), ("stderr", b"Traceback\n")
    )
    texts = [line.text for line in said]

    assert output.truncated
    assert output.seen_bytes == 10 + len(middle) + 9 + 10
    assert texts[:3] == ["beginning", "m", "[more than 11 bytes of output: only the end is kept]"]
    left_out = output.seen_bytes - 11 - TAIL_BYTES - 10
    assert texts[3] == f"[{left_out:,} bytes omitted]"
    assert texts[-2:] == ["last out", "Traceback"]
    assert sum(len(text) + 1 for text in texts) < 11 + 2 * TAIL_BYTES + 200


def events_of(*chunks, limit=1 << 20):
    taken = []
    events = Events(limit, taken.append)
    for chunk in chunks:
        events.feed(chunk)
    events.end()
    return taken, events.refused


@pytest.mark.parametrize(
    ("chunks", "taken", "refused"),
    [
        ([b'{"a": 1}\n{"b": [2]}\n'], [{"a": 1}, {"b": [2]}], 0),
        ([b'{"a"', b': 1}\n{"b', b'": 2}'], [{"a": 1}, {"b": 2}], 0),
        ([b"\n \n"], [], 0),
        ([b"nonsense\n", b'[1]\n"text"\n7\nnull\n', b'{"a": 1}\n'], [{"a": 1}], 5),
        ([b'{"a": NaN}\n{"a": Infinity}\n{"a": 1e999}\n'], [], 3),
        ([b'{"a": "nul \\u0000 \\\\u0000"}\n'], [{"a": "nul  \\u0000"}], 0),
        (
            [b'{"half \\ud800": ["\\udc00"], "whole": "\\ud83d\\ude00"}\n'],
            [{"half ?": ["?"], "whole": "\U0001f600"}],
            0,
        ),
        ([b"\xff\xfe\n", b'{"a": 1}\n'], [{"a": 1}], 1),
        ([b'{"a":' * 100_000 + b"\n", b'{"a": 1}\n'], [{"a": 1}], 1),
        ([b"[" * 10_000 + b"\n"], [], 1),
        ([b'{"a": ' + b"9" * 10_000 + b"}\n"], [], 1),
    ],
)
def test_lines_become_events(chunks, taken, refused):
    assert events_of(*chunks) == (taken, refused)


def test_an_event_has_a_largest_size_and_the_next_is_taken():
    big = json.dumps({"filling": "x" * EVENT_BYTES}).encode() + b"\n"
    chunks = [big[at : at + 65536] for at in range(0, len(big), 65536)]

    assert events_of(*chunks, b'{"a": 1}\n') == ([{"a": 1}], 1)
    assert events_of(big + b'{"a": 1}\n') == ([{"a": 1}], 1)


def test_events_end_at_their_limit():
    line = b'{"a": 1}\n'

    taken, refused = events_of(line * 10, limit=4 * (len(line) - 1))

    assert (len(taken), refused) == (4, 6)


@each_level
def test_both_streams_are_taken_in(tmp_path, sandbox):
    ended, said = run(["binary"], tmp_path, sandbox=sandbox)

    assert [line.text for line in said if line.stream == "stdout"] == [
        "café �� nulnul \x1b[31mred\x1b[0m", "10%", "20%", "100%", "no end",
    ]  # fmt: skip
    assert [line.text for line in said if line.stream == "stderr"] == ["beside it"]
    assert (ended.output_bytes, ended.truncated) == (60, False)


def test_a_line_is_given_on_while_the_child_runs(tmp_path):
    ended, _ = run_until("early", ["drip"], tmp_path, sandbox="limits")

    assert ended.reason == "stopped"
    assert ended.seconds < BUSY_SECONDS


@each_level
def test_closing_the_output_is_not_the_end(tmp_path, sandbox):
    ended, _ = run(["closefd"], tmp_path, sandbox=sandbox)

    assert (ended.reason, ended.returncode) == ("exited", 4)
    assert ended.seconds >= 0.3


def test_a_closed_output_costs_no_time_of_the_processor(tmp_path):
    before = time.thread_time()

    ended, _ = run(["close_and_sleep"], tmp_path, sandbox="limits", limits=Limits(wall_seconds=0.5))

    assert ended.reason == "timed_out"
    assert time.thread_time() - before < 0.1


@each_level
@pytest.mark.parametrize("mode", ["fork", "setsid", "double"])
def test_a_grandchild_that_holds_the_pipe_does_not_delay_the_end(tmp_path, sandbox, mode):
    ended, said = run([mode, "exit"], tmp_path, sandbox=sandbox)

    assert (ended.reason, ended.returncode) == ("exited", 0)
    assert ended.seconds < BUSY_SECONDS
    assert said.heard("forked")


@each_level
def test_all_that_was_written_before_the_end_arrives(tmp_path, sandbox):
    ended, said = run(
        ["spam", 8 << 20], tmp_path, sandbox=sandbox, limits=Limits(wall_seconds=20, output_bytes=16 << 20)
    )

    assert ended.output_bytes == 8 << 20
    assert sum(map(len, said.texts)) == 8 << 20


def test_what_is_in_the_pipes_when_the_child_has_ended_arrives(tmp_path):
    said = Said()
    child = supervise.spawn(witness("burst", 1 << 20), cwd=tmp_path, sandbox="limits", on_output=said)
    assert gone(child.process_id.pid)

    ended = child.wait()

    assert (ended.returncode, ended.output_bytes) == (0, (1 << 20) - 4096)
    assert sum(map(len, said.texts)) == (1 << 20) - 4096


@pytest.mark.long
@each_level
def test_a_gigabyte_without_line_end_neither_fills_the_memory_nor_stops_the_child(tmp_path, sandbox):
    # In a separate process, whose peak memory is measured.
    program = f"""
import resource
from work.processes import supervise
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
supervise.run(["true"], cwd={str(tmp_path)!r}, sandbox={sandbox!r})
before, said = peak(), []
ended = supervise.run({witness("spam", 1 << 30)!r}, cwd={str(tmp_path)!r}, on_output=said.extend, sandbox={sandbox!r})
print(ended.returncode, ended.output_bytes, ended.truncated, sum(len(line.text) for line in said), peak() - before)
"""
    with Helper(program) as helper:
        code, seen, truncated, kept, grown = helper.line().split()

    assert (code, int(seen), truncated) == ("0", 1 << 30, "True")
    assert int(kept) < 1.1 * (1 << 20)
    assert int(grown) < 64


def test_output_that_nobody_wants_does_not_stop_the_child(tmp_path):
    ended = supervise.run(witness("spam", 8 << 20), cwd=tmp_path, limits=SHORT)

    assert (ended.returncode, ended.output_bytes) == (0, 8 << 20)


def test_a_flood_of_output_does_not_delay_a_stop(tmp_path):
    looks = []

    def stop():
        looks.append(time.monotonic())
        return "enough" if len(looks) > 5 else None

    ended, _ = run(["chatter"], tmp_path, sandbox="limits", stop=stop)

    assert ended.reason == "stopped"
    # Not every interval, because the machine may be busy.
    assert sorted(later - earlier for earlier, later in pairwise(looks))[1] < 0.1


@each_level
def test_events_arrive_beside_the_output(tmp_path, sandbox):
    events = []

    ended, said = run(
        ["events", '{"step": 1}', "nonsense", '{"step": 2}'], tmp_path, sandbox=sandbox, on_event=events.append
    )

    assert (events, ended.events_refused, said.texts) == ([{"step": 1}, {"step": 2}], 1, [])


def test_events_avoid_the_numbers_of_passed_descriptors(tmp_path):
    events = []
    with open(os.devnull) as null:
        taken = [os.dup(null.fileno()) for _ in range(20)]
    try:
        run(["events", '{"step": 1}'], tmp_path, sandbox="limits", on_event=events.append, pass_fds=taken)
    finally:
        for each in taken:
            os.close(each)

    assert events == [{"step": 1}]


def test_a_flood_of_events_is_counted_and_does_not_stop_the_child(tmp_path):
    events = []
    limits = Limits(wall_seconds=20, event_bytes=100_000)

    ended, _ = run(["event_flood", 5000], tmp_path, sandbox="limits", on_event=events.append, limits=limits)

    assert ended.returncode == 0
    assert 90 <= len(events) < 100
    assert len(events) + ended.events_refused == 5000


def test_without_a_taker_there_is_no_descriptor_for_events(tmp_path):
    _, said = run(["env"], tmp_path, sandbox="limits")

    assert "ADE_EVENTS_FD" not in said.json


def test_lines_come_in_batches(tmp_path):
    batches = []
    limits = Limits(wall_seconds=20, output_bytes=1 << 30)

    ended = supervise.run(
        witness("chatter"),
        cwd=tmp_path,
        limits=limits,
        on_output=batches.append,
        stop=lambda: "enough" if len(batches) > 100 else None,
    )

    assert ended.reason == "stopped"
    assert all(0 < len(batch) <= BATCH_LINES for batch in batches)
    assert sum(map(len, batches)) / len(batches) > BATCH_LINES / 2


def test_said_is_a_taker_though_it_is_empty(tmp_path):
    said = Said()
    assert not said

    supervise.run(witness("arguments"), cwd=tmp_path, on_output=said)

    assert said.texts == ["[]"]
