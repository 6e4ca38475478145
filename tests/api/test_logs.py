import json

import pytest

from api import logs
from tests.factories import RunFactory, claim_of
from work import clock, lifecycle
from work.changes import EventDraft

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


@pytest.fixture
def run(configuration):
    return RunFactory(configuration=configuration, status="running")


def say(run, *lines, stream="stdout"):
    told = [EventDraft("LOG", clock.now(), "w1", line, {"stream": stream}) for line in lines]
    assert lifecycle.record_many(claim_of(run), told)


def path(run, query=""):
    return f"/api/v1/runs/{run.pk}/log?{query}"


def text(answer):
    return answer.content.decode()


def test_a_log_is_lines_of_text(operator, run):
    say(run, "one", "zwölf")
    say(run, "oh", stream="stderr")

    answer = operator.get(path(run))

    assert text(answer) == "one\nzwölf\noh\n"
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    assert answer["Cache-Control"] == "private, no-store"
    assert (answer["X-Last-Sequence"], answer["X-More"]) == ("5", "false")
    assert text(operator.get(path(run, "stream=stderr"))) == "oh\n"


def test_a_log_is_read_on_from_where_it_was_left(operator, run):
    say(run, "one", "two", "three")

    first = operator.get(path(run, "limit=2"))
    rest = operator.get(path(run, f"after={first['X-Last-Sequence']}"))
    none = operator.get(path(run, f"after={rest['X-Last-Sequence']}"))

    assert (text(first), first["X-More"], text(rest), rest["X-More"]) == ("one\ntwo\n", "true", "three\n", "false")
    assert (text(none), none["X-Last-Sequence"]) == ("", rest["X-Last-Sequence"])


def test_an_answer_is_bounded_and_never_empty_while_there_is_more(operator, run, monkeypatch):
    say(run, "a" * 30, "b" * 30, "c" * 30)
    monkeypatch.setattr(logs, "MOST_BYTES", 70)

    first = operator.get(path(run))

    assert (len(text(first).splitlines()), first["X-More"]) == (2, "true")
    monkeypatch.setattr(logs, "MOST_BYTES", 1)
    assert len(text(operator.get(path(run))).splitlines()) == 1


def test_a_log_is_lines_of_json(operator, run):
    say(run, "one\x85two", stream="stderr")

    (line,) = text(operator.get(path(run, "format=json"))).splitlines()

    assert json.loads(line)["message"] == "one\x85two"
    assert {"sequence": 3, "stream": "stderr", "step": None}.items() <= json.loads(line).items()


def test_events_are_filtered_by_kind_and_level(operator, run):
    say(run, "one")
    lifecycle.record(claim_of(run).states, run.pk, "PROCESSES_LEFT_BEHIND", level=30)

    def kinds(query=""):
        return [each["kind"] for each in operator.get(f"/api/v1/runs/{run.pk}/events?{query}").json()["items"]]

    assert kinds() == ["RUN_QUEUED", "RUN_STARTED", "LOG", "PROCESSES_LEFT_BEHIND"]
    assert kinds("kind=LOG") == ["LOG"]
    assert kinds("level=30") == ["PROCESSES_LEFT_BEHIND"]
    assert kinds("after=3") == ["PROCESSES_LEFT_BEHIND"]
