"""Streams that notify a page that it has changed, without saying what has changed."""

import asyncio
import gc
from datetime import timedelta

import pytest
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore

from api.streams import following
from api.streams.hub import HUB
from api.streams.places import PLACES
from console import live
from runs import queue
from tests.api.streaming import in_thread, opened
from tests.factories import RunFactory, bring_to, write
from tests.stepping import until
from work import clock, lifecycle
from work.models import Worker
from work.work_types import work_type_named

pytestmark = [pytest.mark.long, pytest.mark.django_db(transaction=True)]

EVERYTHING = "/live/"


@pytest.fixture(autouse=True)
def nothing_is_left(monkeypatch):
    monkeypatch.setattr(live, "WORKERS", live.AliveWorkers())
    yield
    gc.collect()
    until(lambda: len(PLACES) == 0)
    until(lambda: HUB._tail is None and not HUB._subscribers)


@pytest.fixture
def run(document, configuration, build):
    return RunFactory(workspace=document.workspace, configuration=configuration, build=build, input_document=document)


def cookie_of(user):
    session = SessionStore()
    session[SESSION_KEY], session[HASH_SESSION_KEY] = str(user.pk), user.get_session_auth_hash()
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[-1]
    session.save()
    return {"Cookie": f"{settings.SESSION_COOKIE_NAME}={session.session_key}"}


def ticks(stream):
    return sum(message.event == live.CHANGED for message in stream.messages)


def told(user, path, *acts, count=1):
    """Follow a page during these acts, wait for `count` ticks after each, and return the stream."""

    async def follow(headers):
        async with opened(path, **headers) as stream:
            if stream.status != 200:
                return stream
            await stream.until(lambda stream: ticks(stream) == 1)
            for act in acts:
                before = ticks(stream)
                await in_thread(act)
                await stream.until(lambda stream, least=before + count: ticks(stream) >= least)
            return stream

    return asyncio.run(follow(cookie_of(user)))


def nothing_told(user, path, act):
    """Check that this act sends nothing, although a later act does."""
    return told(user, path, lambda: (act(), queue.pause(actor="olga")))


def test_whatever_happens_in_a_workspace_is_told_to_its_members(run, ravi):
    stream = told(ravi, EVERYTHING, lambda: bring_to(run, "running"), lambda: bring_to(run, "succeeded"))

    assert ticks(stream) >= 3
    assert {message.event for message in stream.messages} == {live.CHANGED}
    assert [message.data for message in stream.messages] == [{}] * len(stream.messages)


def test_what_happens_elsewhere_is_told_to_nobody_else(ravi, run):
    others = RunFactory()

    stream = nothing_told(ravi, EVERYTHING, lambda: bring_to(others, "running"))

    assert ticks(stream) == 2


def test_a_superuser_is_told_of_everything(admin_user, run):
    assert ticks(told(admin_user, EVERYTHING, lambda: bring_to(run, "running"))) >= 2


def test_what_all_share_is_told_to_everybody(ravi):
    assert ticks(told(ravi, EVERYTHING, lambda: queue.pause(actor="olga"))) == 2


def test_the_page_of_a_run_is_told_of_its_log_too(ravi, run):
    def prints():
        assert lifecycle.record(
            work_type_named("run").states, run.pk, "LOG", message="hello", data={"stream": "stdout"}
        )

    assert ticks(told(ravi, f"/live/run/{run.pk}/", prints)) == 2
    assert ticks(nothing_told(ravi, EVERYTHING, prints)) == 2


def test_a_worker_that_falls_silent_is_told_of_without_an_event(ravi, run, monkeypatch):
    monkeypatch.setattr(following, "HEARTBEAT_SECONDS", 0.05)
    monkeypatch.setattr(live, "WORKERS_SECONDS", 0.0)
    now = clock.now()
    known = {"host": "here", "machine": "m", "pid": 1, "pid_started": 1, "version": "1"}
    worker = Worker.objects.create(name="w1", boot_id="b1", started_at=now, heartbeat_at=now, **known)

    stream = told(ravi, EVERYTHING, lambda: write(worker, heartbeat_at=now - timedelta(days=1)))

    assert ticks(stream) == 2


def test_who_is_alive_is_asked_once_for_all(django_assert_num_queries):
    workers = live.AliveWorkers()

    with django_assert_num_queries(1):
        assert workers.ids() == workers.ids() == ()


def test_rows_of_others_have_no_stream(ravi, zed, run):
    assert told(zed, f"/live/run/{run.pk}/").status == 404
    assert told(ravi, f"/live/run/{RunFactory().pk}/").status == 404
    assert told(ravi, "/live/worker/1/").status == 404


def test_whoever_is_not_signed_in_is_told_nothing(client):
    assert client.get(EVERYTHING).url == "/sign-in/?next=/live/"


def test_whoever_has_too_many_streams_is_told_when_to_come_again(ravi, run, monkeypatch):
    monkeypatch.setattr("api.streams.places.OF_ONE_CALLER", 0)

    stream = told(ravi, EVERYTHING)

    assert stream.status == 429
    assert stream.headers["retry-after"] == "10"
