import asyncio
import gc
import threading
from contextlib import AsyncExitStack

import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.db import DatabaseError, InterfaceError, connection

from api import tokens
from api.streams import following, hub, places, sources, stopping
from api.streams.hub import HUB
from api.streams.places import PLACES
from api.subjects import LEFT_OUT, PATHS, Workspaces
from runs.lifecycle import RUN_STATES
from tests.api.streaming import in_thread, opened
from tests.factories import (
    BuildFactory,
    DocumentFactory,
    JobFactory,
    RunFactory,
    StageFactory,
    bring_to,
    events_of,
)
from tests.stepping import until
from work import lifecycle
from work.models import Event
from work.tail import Position
from work.work_types import all_work_types

pytestmark = [pytest.mark.long, pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def nothing_is_left():
    """Check after each test that all stream places are free and that the hub has closed its connection."""
    yield
    gc.collect()
    until(lambda: len(PLACES) == 0)
    until(lambda: HUB._tail is None and not HUB._subscribers)


@pytest.fixture
def token(ravi, workspace):
    return tokens.issue(workspace, ravi, "follows", [], actor="olga")[1]


@pytest.fixture
def run(document, configuration, build):
    return RunFactory(workspace=document.workspace, configuration=configuration, build=build, input_document=document)


@pytest.fixture
def path(workspace):
    return f"/api/v1/workspaces/{workspace.pk}/stream"


def note(subject, kind="NOTE", message=""):
    states = next(each.states for each in all_work_types() if each.states.model is type(subject))
    assert lifecycle.record(states, subject.pk, kind, message=message, data={"stream": "stdout"})


def stream_of(run):
    return f"/api/v1/runs/{run.pk}/stream"


def test_a_run_is_followed_to_its_end(run, token):
    async def follow():
        async with opened(stream_of(run), token) as stream:
            await stream.until(lambda stream: stream.events)
            await in_thread(lambda: bring_to(run, "running"))
            await in_thread(lambda: note(run, "LOG", "hello\nthere"))
            await in_thread(lambda: bring_to(run, "succeeded"))
            await stream.until_over()
        return stream

    stream = asyncio.run(follow())

    assert stream.kinds == ["RUN_QUEUED", "RUN_STARTED", "LOG", "RUN_SUCCEEDED"]
    assert [message.id for message in stream.messages] == ["1", "2", "3", "4", "4"]
    assert stream.said == [("end", "finished")]
    assert stream.events[2]["message"] == "hello\nthere"
    last, row = stream.events[-1], events_of(run).last()
    names = ("id", "subject_kind", "subject_id", "sequence", "kind", "from_status", "to_status", "actor", "level")
    assert {name: last[name] for name in names} == {name: getattr(row, name) for name in names}
    assert stream.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert stream.headers["cache-control"] == "private, no-store"
    assert stream.headers["x-accel-buffering"] == "no"
    assert stream.retry


def test_a_run_that_ends_while_its_events_are_read_is_told_to_its_end(run):
    bring_to(run, "running")
    source = sources.OfSubject(RUN_STATES, run.pk, run.TERMINAL, "")
    row = source._row

    class EndsBehind:
        def first(self):
            found = row.first()
            bring_to(run, "succeeded")
            return found

    source._row = EndsBehind()
    told = source.read()
    source._row = row

    assert "RUN_SUCCEEDED" in told
    assert (source.over, source.is_behind) == ("", True)
    assert source.read() == ""
    assert source.over == "finished"


def test_whoever_comes_again_goes_on_behind_the_last_one(run, token):
    bring_to(run, "succeeded")

    async def follow(**given):
        async with opened(stream_of(run), token, **given) as stream:
            await stream.until_over()
        return stream

    by_header = asyncio.run(follow(last_event_id="2"))
    by_query = asyncio.run(follow(query="last_event_id=2"))
    by_both = asyncio.run(follow(last_event_id="3", query="last_event_id=1"))

    assert by_header.kinds == by_query.kinds == ["RUN_SUCCEEDED"]
    assert by_both.kinds == []
    assert by_both.said == [("end", "finished")]


def test_an_id_that_the_run_never_had_is_told(run, token):
    bring_to(run, "succeeded")

    async def follow():
        async with opened(stream_of(run), token, last_event_id="77") as stream:
            await stream.until_over()
        return stream

    stream = asyncio.run(follow())

    assert stream.messages[0].event == "reset"
    assert stream.kinds == ["RUN_QUEUED", "RUN_STARTED", "RUN_SUCCEEDED"]


def test_a_build_that_was_queued_again_is_followed_to_its_next_end(configuration, token):
    build = BuildFactory(configuration=configuration, status="failed")
    bring_to(build, "queued")

    async def follow():
        async with opened(f"/api/v1/builds/{build.pk}/stream", token) as stream:
            await stream.until(lambda stream: "BUILD_QUEUED_AGAIN" in stream.kinds)
            await in_thread(lambda: bring_to(build, "ready"))
            await stream.until_over()
        return stream

    stream = asyncio.run(follow())

    assert stream.kinds[-1] == "BUILD_READY"
    assert stream.said == [("end", "finished")]


def test_more_than_is_read_at_once_comes_whole_and_in_order(run, token, monkeypatch):
    monkeypatch.setattr(sources, "BATCH", 3)
    for n in range(10):
        note(run, "LOG", str(n))

    async def follow():
        async with opened(stream_of(run), token) as stream:
            await stream.until(lambda stream: len(stream.events) == 11)
        return stream

    assert [event["sequence"] for event in asyncio.run(follow()).events] == list(range(1, 12))


def test_of_a_workspace_all_is_told_and_nothing_of_another(run, build, document, path, token):
    job = JobFactory(document=document)
    stage = StageFactory(job=job)
    other = DocumentFactory()

    async def follow(query=""):
        async with opened(path, token, query=query) as stream:
            await stream.until(lambda stream: stream.last_id)
            for subject in (run, build, document, other, job, stage):
                await in_thread(lambda subject=subject: note(subject))
            await in_thread(lambda: note(run, "LOG"))
            await in_thread(lambda: note(run, "LAST"))
            await stream.until(lambda stream: "LAST" in stream.kinds)
        return stream

    without, with_logs = asyncio.run(follow()), asyncio.run(follow("logs=true"))

    assert [event["subject_kind"] for event in without.events] == ["run", "build", "document", "job", "stage", "run"]
    assert [kind for kind in with_logs.kinds if kind != "NOTE"] == ["LOG", "LAST"]


def test_every_kind_that_belongs_to_a_workspace_is_known_to_do_so():
    def leads_there(model, seen):
        names = [f.related_model for f in model._meta.concrete_fields if f.many_to_one and not f.null]
        return any(m._meta.label == "workspaces.Workspace" for m in names) or any(
            leads_there(m, {*seen, m}) for m in names if m not in seen
        )

    assert {kind.name for kind in all_work_types() if leads_there(kind.states.model, set())} == PATHS.keys() | LEFT_OUT


def test_in_a_workspace_whoever_comes_again_misses_nothing_and_hears_nothing_twice(run, path, token):
    async def first():
        async with opened(path, token) as stream:
            await stream.until(lambda stream: stream.last_id)
            await in_thread(lambda: note(run, message="one"))
            await stream.until(lambda stream: stream.events)
        return stream

    async def second(last_id):
        async with opened(path, token, last_event_id=last_id) as stream:
            await stream.until(lambda stream: len(stream.events) == 2)
            await in_thread(lambda: note(run, message="four"))
            await stream.until(lambda stream: len(stream.events) == 3)
        return stream

    last_id = asyncio.run(first()).last_id
    note(run, message="two")
    note(run, message="three")

    assert [event["message"] for event in asyncio.run(second(last_id)).events] == ["two", "three", "four"]


@pytest.mark.only_on("postgresql")
def test_what_commits_late_is_told_late_and_also_to_whoever_comes_again(run, document, path, token, threads):
    async def first(late):
        async with opened(path, token) as stream:
            await stream.until(lambda stream: stream.last_id)
            late.append(await in_thread(lambda: threads.hold(lambda: note(run, message="late"))))
            await in_thread(lambda: note(document, message="early"))
            await stream.until(lambda stream: stream.events)
        return stream

    async def second(late, last_id):
        async with opened(path, token, last_event_id=last_id) as stream:
            await stream.until(lambda stream: stream.retry)
            await in_thread(late.commit)
            await stream.until(lambda stream: stream.events)
            await in_thread(lambda: note(document, message="last"))
            await stream.until(lambda stream: len(stream.events) == 2)
        return stream

    late = []
    early = asyncio.run(first(late))
    found = asyncio.run(second(late[0], early.last_id))

    assert [event["message"] for event in early.events] == ["early"]
    assert [event["message"] for event in found.events] == ["late", "last"]
    assert Position.from_text(found.last_id) == Position(Event.objects.order_by("-id").first().id)


@pytest.mark.parametrize("last_event_id", ["999999999", "0"], ids=["of a database that was", "too old"])
def test_an_id_from_which_nobody_can_go_on_is_told(run, path, token, monkeypatch, last_event_id):
    monkeypatch.setattr(sources, "MOST_BEHIND", 0)

    async def follow():
        async with opened(path, token, last_event_id=last_event_id) as stream:
            await stream.until(lambda stream: stream.said)
            await in_thread(lambda: note(run))
            await stream.until(lambda stream: stream.events)
        return stream

    stream = asyncio.run(follow())

    assert [name for name, _ in stream.said] == ["reset"]
    assert stream.kinds == ["NOTE"]


def test_what_is_no_id_of_a_stream_is_refused(run, path, token):
    async def ask(path, last_event_id):
        async with opened(path, token, last_event_id=last_event_id) as stream:
            return stream.status, b'"code": "invalid_request"' in stream.body

    async def ask_all():
        ids = ["x", "-1", "1:2", "9" * 30, "1%0d%0aid: 7"]
        return [await ask(each, id) for each in (path, stream_of(run)) for id in ids]

    assert asyncio.run(ask_all()) == [(400, True)] * 10


def test_what_others_have_is_not_there(token):
    theirs = RunFactory()
    ids = {
        "workspaces": theirs.workspace_id,
        "runs": theirs.pk,
        "builds": theirs.build_id,
        "documents": theirs.input_document_id,
    }

    async def ask(path):
        async with opened(path, token) as stream:
            return stream.status

    async def ask_all():
        return [await ask(f"/api/v1/{kind}/{id}/stream") for kind, id in ids.items()]

    assert asyncio.run(ask_all()) == [404] * 4


def test_a_quiet_stream_says_that_it_is_there_and_where(run, path, token, monkeypatch):
    monkeypatch.setattr(following, "HEARTBEAT_SECONDS", 0.2)
    other = DocumentFactory()

    async def follow():
        async with opened(path, token) as stream:
            await stream.until(lambda stream: stream.comments)
            first = stream.last_id
            await in_thread(lambda: note(other))
            await stream.until(lambda stream: stream.last_id != first)
        return stream

    stream = asyncio.run(follow())

    assert stream.events == []
    assert stream.last_id == str(Event.objects.order_by("-id").first().id)


def test_a_stream_ends_after_a_while_and_says_so(run, token, monkeypatch):
    monkeypatch.setattr(following, "LONGEST_SECONDS", 0.2)

    async def follow():
        async with opened(stream_of(run), token) as stream:
            await stream.until_over()
        return stream

    assert asyncio.run(follow()).said == [("again", "time")]


def test_a_process_that_is_told_to_end_ends_its_streams(run, token, monkeypatch):
    async def follow():
        async with opened(stream_of(run), token) as stream:
            await stream.until(lambda stream: stream.events)
            monkeypatch.setattr(stopping, "stop_checks", [lambda: True])
            await stream.until_over()
            async with opened(stream_of(run), token) as another:
                await another.until_over()
        return stream, another

    assert [stream.said for stream in asyncio.run(follow())] == [[("again", "stopping")]] * 2


def revoke(token):
    tokens.revoke(tokens.find(token), actor="olga")


def leave(token):
    tokens.find(token).user.memberships.all().delete()


def leave_the_house(token):
    user = tokens.find(token).user
    user.is_active = False
    user.save()


@pytest.mark.parametrize("act", [revoke, leave, leave_the_house])
def test_whoever_may_not_see_it_any_more_does_not(run, token, monkeypatch, act):
    monkeypatch.setattr(following, "CHECK_SECONDS", 0.2)

    async def follow():
        async with opened(stream_of(run), token) as stream:
            await stream.until(lambda stream: stream.events)
            await in_thread(lambda: act(token))
            await stream.until_over()
        return stream

    assert asyncio.run(follow()).said == [("end", "forbidden")]


def test_whoever_may_goes_on(run, token, monkeypatch):
    monkeypatch.setattr(following, "CHECK_SECONDS", 0.05)
    monkeypatch.setattr(following, "LONGEST_SECONDS", 0.5)

    async def follow():
        async with opened(stream_of(run), token) as stream:
            await stream.until_over()
        return stream

    assert asyncio.run(follow()).said == [("again", "time")]


def test_signed_out_the_stream_of_a_session_ends(run, ravi, client, monkeypatch):
    monkeypatch.setattr(following, "CHECK_SECONDS", 0.2)
    client.force_login(ravi)
    session = client.cookies["sessionid"].value

    async def follow():
        async with opened(stream_of(run), cookie=f"sessionid={session}") as stream:
            await stream.until(lambda stream: stream.events)
            await asyncio.sleep(0.5)
            assert not stream.is_over
            await in_thread(SessionStore(session).delete)
            await stream.until_over()
        return stream

    assert asyncio.run(follow()).said == [("end", "forbidden")]


def test_a_caller_has_so_many_streams_and_no_more(run, token, monkeypatch):
    monkeypatch.setattr(places, "OF_ONE_CALLER", 2)

    async def follow():
        streams = [opened(stream_of(run), token) for _ in range(3)]
        async with streams[0], streams[1], streams[2] as third:
            pass
        async with opened(stream_of(run), token) as after:
            return third, after

    third, after = asyncio.run(follow())

    assert third.status == 429
    assert b'"code": "rate_limited"' in third.body
    assert third.headers["retry-after"]
    assert after.status == 200


def test_a_process_has_so_many_streams_and_no_more(run, token, monkeypatch):
    monkeypatch.setattr(places, "OF_ALL", 1)

    async def follow():
        async with opened(stream_of(run), token), opened(stream_of(run), token) as second:
            return second

    assert asyncio.run(follow()).status == 503


def test_a_stream_that_nobody_has_begun_takes_no_place():
    taken = PLACES.take("token 1")
    assert len(PLACES) == 1

    del taken
    gc.collect()

    assert len(PLACES) == 0


def test_a_reader_that_is_too_slow_comes_again_and_misses_nothing(run, path, token, monkeypatch):
    monkeypatch.setattr(hub, "MOST_WAITING", 20)

    async def slow():
        async with opened(path, token) as stream:
            await stream.until(lambda stream: stream.last_id)
            stream.takes.clear()
            for n in range(50):
                await in_thread(lambda n=n: note(run, message=str(n)))
            await asyncio.sleep(0.3)
            stream.takes.set()
            await stream.until_over()
        return stream

    async def again(last_id):
        async with opened(path, token, last_event_id=last_id) as stream:
            await stream.until(lambda stream: stream.events and stream.events[-1]["message"] == "49")
        return stream

    first = asyncio.run(slow())
    second = asyncio.run(again(first.last_id))

    assert first.said == [("again", "slow")]
    assert [event["message"] for event in first.events + second.events] == [str(n) for n in range(50)]


def test_one_that_takes_nothing_at_all_is_cut_off(run, token, monkeypatch):
    monkeypatch.setattr(following, "LONGEST_SECONDS", 0.2)
    monkeypatch.setattr(following, "CUT_AFTER_SECONDS", 0.2)

    async def stuck():
        async with opened(stream_of(run), token) as stream:
            await stream.until(lambda stream: stream.events)
            stream.takes.clear()
            await asyncio.sleep(1)
            return len(PLACES)

    assert asyncio.run(stuck()) == 0


def test_a_database_that_goes_away_ends_streams_that_then_come_again(run, path, token, monkeypatch):
    real, looks = hub.Tail.read, []

    def read(self):
        looks.append(self)
        if len(looks) > 2:
            connection.cursor().execute("SELECT nothing FROM nowhere")
        return real(self)

    async def follow():
        async with opened(path, token) as stream:
            await stream.until(lambda stream: stream.last_id)
            with monkeypatch.context() as away:
                away.setattr(hub.Tail, "read", read)
                await stream.until_over()
        async with opened(path, token, last_event_id=stream.last_id) as again:
            await in_thread(lambda: note(run))
            await again.until(lambda again: again.events)
        return stream

    assert asyncio.run(follow()).said == [("again", "unavailable")]


def test_a_connection_that_was_lost_is_made_again_and_nobody_hears_of_it(run, path, token, monkeypatch):
    real, looks = hub.Tail.read, []

    def read(self):
        looks.append(self)
        if len(looks) == 2:
            connection.cursor().execute("SELECT nothing FROM nowhere")
        return real(self)

    async def follow():
        async with opened(path, token) as stream:
            await stream.until(lambda stream: stream.last_id)
            monkeypatch.setattr(hub.Tail, "read", read)
            await in_thread(lambda: until(lambda: len(looks) > 3))
            await in_thread(lambda: note(run))
            await stream.until(lambda stream: stream.events)
        return stream

    assert asyncio.run(follow()).said == []


@pytest.mark.parametrize("error", [DatabaseError, InterfaceError])
def test_what_was_read_when_the_connection_was_lost_is_told_all_the_same(run, path, token, monkeypatch, error):
    real, asked = Workspaces.of, []

    def of(self, events):
        asked.append([event.kind for event in events])
        if len(asked) == 1:
            raise error("the connection is lost")
        return real(self, events)

    async def follow():
        async with opened(path, token) as stream:
            await stream.until(lambda stream: stream.last_id)
            monkeypatch.setattr(Workspaces, "of", of)
            await in_thread(lambda: note(run, "NOTE"))
            await in_thread(lambda: note(run, "ANOTHER"))
            await stream.until(lambda stream: "ANOTHER" in stream.kinds)
        return stream

    stream = asyncio.run(follow())

    assert stream.kinds == ["NOTE", "ANOTHER"]
    assert stream.said == []


@pytest.mark.parametrize("error", [DatabaseError, InterfaceError])
def test_a_stream_that_cannot_ask_the_database_is_to_come_again(run, token, monkeypatch, error):
    def fail(self, position):
        raise error("the connection is lost")

    monkeypatch.setattr(sources.OfSubject, "begin", fail)

    async def follow():
        async with opened(stream_of(run), token) as stream:
            await stream.until_over()
        return stream

    assert asyncio.run(follow()).said == [("again", "unavailable")]


def test_many_streams_are_one_thread_one_tail_and_give_all_back(run, path, token):
    async def follow():
        async with AsyncExitStack() as stack:
            streams = [await stack.enter_async_context(opened(path, token)) for _ in range(20)]
            for stream in streams:
                await stream.until(lambda stream: stream.last_id)
            await in_thread(lambda: note(run))
            for stream in streams:
                await stream.until(lambda stream: stream.events)
            return [thread.name for thread in threading.enumerate()]

    names = asyncio.run(follow())

    assert names.count("streams-hub") == 1
    assert not [name for name in names if name.startswith("request")]
