import json

import pytest

from tests.factories import BuildFactory, RunFactory, bring_to, claim_of
from work import clock, lifecycle
from work.changes import EventDraft
from work.operations import watching

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


def say(row, *messages, stream="stdout", **data):
    told = [EventDraft("LOG", clock.now(), "", message, {"stream": stream, **data}) for message in messages]
    assert lifecycle.record_many(claim_of(row), told)


@pytest.fixture(params=["run", "build"])
def noun(request):
    return request.param


@pytest.fixture
def row(noun):
    return RunFactory(status="running") if noun == "run" else BuildFactory(status="building")


def texts(ended):
    return [line.split(maxsplit=3)[3] for line in ended.out.splitlines()]


def test_a_log_is_printed_with_the_latest_last(manage, noun, row):
    say(row, "first", "second")
    say(row, "third", stream="stderr", step="total")

    ended = manage(noun, "logs", row.pk)

    assert ended.code == 0
    assert [line.split()[0] for line in ended.out.splitlines()] == ["3", "4", "5"]
    assert [line.split()[2] for line in ended.out.splitlines()] == ["stdout", "stdout", "stderr"]
    assert texts(ended) == ["first", "second", "total: third"]


def test_as_json_it_is_one_document(manage, noun, row):
    say(row, "first", step="total")

    ended = manage(noun, "logs", row.pk, "--json")

    (line,) = ended.json["logs"]
    assert (ended.json["id"], ended.json["status"]) == (row.pk, row.status)
    assert line.pop("at")
    assert line == {"sequence": 3, "claim_token": 1, "stream": "stdout", "step": "total", "message": "first"}


def test_only_what_came_after_and_only_one_stream(manage, noun, row):
    say(row, "first", "second")
    say(row, "third", stream="stderr")
    say(row, "fourth", stream="log")

    assert texts(manage(noun, "logs", row.pk, "--after", 3)) == ["second", "third", "fourth"]
    assert texts(manage(noun, "logs", row.pk, "--stream", "stderr")) == ["third"]
    assert texts(manage(noun, "logs", row.pk, "--stream", "stdout", "--after", 3)) == ["second"]
    assert manage(noun, "logs", row.pk, "--after", 2**63 - 1).out == "None.\n"


def test_without_a_log_there_is_none(manage, noun, row):
    assert manage(noun, "logs", row.pk).out == "None.\n"
    assert manage(noun, "logs", row.pk, "--json").json["logs"] == []


def test_others_have_logs_of_their_own(manage):
    run, build = RunFactory(status="running"), BuildFactory(status="building")
    say(run, "of the run")
    say(build, "of the build")
    say(RunFactory(status="running"), "of another run")

    assert texts(manage("run", "logs", run.pk)) == ["of the run"]
    assert texts(manage("build", "logs", build.pk)) == ["of the build"]


def test_what_a_program_says_cannot_drive_the_terminal(manage, row, noun):
    say(row, "\x1b[31mred\x1b[0m", "10 %\r20 %", "a\tb", "", "one\ntwo", step="\x1b[2J")

    for options in ([], ["--follow"]):
        bring_to(row, "failed")
        out = manage(noun, "logs", row.pk, *options).out

        assert "\x1b" not in out
        assert "\r" not in out
        said = [line.split("\\x1b[2J: ")[1] if ": " in line else line for line in out.splitlines()]
        assert said == ["\\x1b[31mred\\x1b[0m", "10 %", "20 %", "a       b", "", "one", "two"]


def test_a_long_log_is_read_in_parts(manage, row, noun, monkeypatch):
    monkeypatch.setattr(watching, "BATCH", 2)
    say(row, *"abcde")

    assert texts(manage(noun, "logs", row.pk)) == list("abcde")


@pytest.fixture
def meanwhile(monkeypatch):
    """Return a function that queues what happens in the pauses between two polls, one per pause; after the last one
    Ctrl-C is pressed.
    """

    def meanwhile(*happenings):
        left = list(happenings)

        def happen(seconds):
            assert seconds == watching.LOOK_SECONDS
            if not left:
                raise KeyboardInterrupt
            left.pop(0)()

        monkeypatch.setattr(watching.time, "sleep", happen)
        return left

    return meanwhile


def test_follow_goes_on_until_the_row_has_ended(manage, noun, row, meanwhile):
    say(row, "first")

    def ends():
        say(row, "last")
        bring_to(row, "failed")

    left = meanwhile(lambda: say(row, "second"), lambda: None, ends)
    ended = manage(noun, "logs", row.pk, "--follow")

    assert ended.code == 0
    assert texts(ended) == ["first", "second", "last"]
    assert left == []


def test_follow_finds_what_is_said_between_its_two_questions(manage, row, noun, monkeypatch):
    status_of = watching.WatchedCommand._status

    def ends_then(command, id):
        status = status_of(command, id)
        if status not in command.terminal:
            say(row, "last")
            bring_to(row, "failed")
        return status

    monkeypatch.setattr(watching.WatchedCommand, "_status", ends_then)
    monkeypatch.setattr(watching.time, "sleep", lambda seconds: None)

    assert texts(manage(noun, "logs", row.pk, "--follow")) == ["last"]


def test_follow_in_json_is_an_object_in_each_line(manage, noun, row, meanwhile):
    say(row, "first\nstill first")
    meanwhile(lambda: say(row, "second", stream="stderr"), lambda: bring_to(row, "failed"))

    ended = manage(noun, "logs", row.pk, "--follow", "--json")

    told = [json.loads(line) for line in ended.out.splitlines()]
    assert [(each["sequence"], each["message"]) for each in told] == [(3, "first\nstill first"), (4, "second")]


def test_follow_one_stream_from_somewhere(manage, noun, row, meanwhile):
    say(row, "first", "second")
    meanwhile(
        lambda: say(row, "third", stream="stderr"), lambda: say(row, "fourth"), lambda: bring_to(row, "cancelled")
    )

    assert texts(manage(noun, "logs", row.pk, "--follow", "--stream", "stdout", "--after", 3)) == ["second", "fourth"]


def test_follow_can_be_ended_by_whoever_watches(manage, noun, row, meanwhile):
    meanwhile()

    ended = manage(noun, "logs", row.pk, "--follow")

    assert (ended.code, ended.out, ended.err) == (0, "", "")


def test_follow_waits_for_what_is_queued(manage, meanwhile):
    run = RunFactory()
    meanwhile(lambda: bring_to(run, "running"), lambda: say(run, "at work"), lambda: bring_to(run, "succeeded"))

    assert texts(manage("run", "logs", run.pk, "--follow")) == ["at work"]


@pytest.mark.parametrize("options", [[], ["--follow"]])
def test_one_that_does_not_exist(manage, noun, options):
    ended = manage(noun, "logs", 999_999, "--json", *options)

    assert (ended.code, ended.error["code"]) == (6, "not_found")


def test_a_stream_that_there_is_not(manage):
    assert manage("run", "logs", 1, "--stream", "stdin").code == 2
