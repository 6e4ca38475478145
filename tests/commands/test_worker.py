from datetime import timedelta

import pytest

from work import boots, clock

pytestmark = pytest.mark.django_db


def worker(name, **columns):
    row = boots.register(name, f"boot-{name}", {"errand": 2})
    type(row).objects.filter(pk=row.pk).update(**columns)
    return row


def test_list_tells_who_is_alive(manage):
    now = clock.now()
    worker("w1", doing=["run 7"])
    worker("w2", heartbeat_at=now - timedelta(minutes=5))
    worker("w3", stopped_at=now)

    rows = manage("worker", "list", "--json").json["workers"]

    assert [(row["name"], row["state"]) for row in rows] == [("w3", "stopped"), ("w2", "silent"), ("w1", "alive")]
    assert rows[2]["doing"] == ["run 7"]


def test_list_can_leave_out_the_dead(manage):
    worker("w1")
    worker("w2", heartbeat_at=clock.now() - timedelta(minutes=5))

    rows = manage("worker", "list", "--alive", "--json").json["workers"]

    assert [row["name"] for row in rows] == ["w1"]


def test_list_is_a_table_for_people(manage):
    worker("w1", doing=["run 7", "run 8"])

    assert "run 7, run 8" in manage("worker", "list").out


@pytest.mark.parametrize("text", ["nothing=1", "errand", "errand=", "errand=-1", "errand=²", "run=2", ""])
def test_slots_that_make_no_sense_are_a_mistake_of_the_command_line(manage, text):
    ended = manage("worker", f"--slots={text}", "--json")

    assert (ended.code, ended.error["code"]) == (2, "usage")


def test_a_slot_of_an_unknown_kind_is_refused_before_anything_starts(manage):
    ended = manage("worker", "--slots", "nothing=1")

    assert ended.code == 2
    assert "argument --slots: expected KIND=NUMBER with a kind of build, errand, run" in ended.err
    assert "found 'nothing=1'; `manage.py worker --help` shows what is expected" in ended.err


def test_where_no_kind_has_slots_the_refusal_says_so(manage, monkeypatch):
    monkeypatch.setattr("work.management.commands.worker.all_kinds", lambda: iter(()))

    ended = manage("worker", "--slots", "run=2")

    assert ended.code == 2
    assert "found 'run=2', but no kind of work has slots yet" in ended.err
