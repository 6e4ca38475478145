from datetime import timedelta

import pytest

from tests.factories import events_of
from work import boots, clock, draining

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


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


def test_list_tells_who_drains(manage):
    row = worker("w1")
    draining.drain(row, actor="olga", reason="a new version")

    (told,) = manage("worker", "list", "--json").json["workers"]

    assert (told["state"], told["drain_requested_by"], told["drain_reason"]) == ("alive", "olga", "a new version")
    assert told["drain_requested_at"]
    assert "DRAIN REQUESTED BY" in manage("worker", "list").out


@pytest.mark.parametrize("by", ["pk", "name"])
def test_drain_asks_a_worker_by_its_id_or_name(manage, by):
    row = worker("w1")
    worker("w2")

    ended = manage("worker", "drain", getattr(row, by), "--reason", "a new version", "--as", "olga", "--json")

    assert (ended.code, ended.json["result"], ended.json["id"]) == (0, "asked to drain", row.pk)
    row.refresh_from_db()
    assert (row.drain_requested_by, row.drain_reason) == ("olga (command)", "a new version")
    assert events_of(row).last().actor == "olga (command)"


def test_drain_says_what_happens_now(manage):
    row = worker("w1")

    first, again = manage("worker", "drain", "w1", "--as", "olga"), manage("worker", "drain", "w1", "--as", "ada")

    assert (first.code, again.code) == (0, 1)
    assert first.out.startswith(f"{row.owner} is draining: it claims nothing more")
    assert f"{row.owner} is already draining: " in again.out
    assert "olga (command) requested it at " in again.out


def test_a_name_is_that_of_the_boot_that_is_alive(manage):
    worker("w1", stopped_at=clock.now())
    alive = boots.register("w1", "boot2", {})
    worker("w2", boot_id="last", stopped_at=clock.now())

    assert manage("worker", "drain", "w1", "--json").json["id"] == alive.pk
    gone = manage("worker", "drain", "w2", "--json")
    assert (gone.code, gone.json["result"], gone.json["state"]) == (1, "is not alive", "stopped")
    assert "cannot drain: it stopped at" in manage("worker", "drain", "w2").out


def test_a_name_that_two_have_is_asked_back(manage):
    ids = [boots.register("w1", f"boot{n}", {}).pk for n in range(2)]

    ended = manage("worker", "drain", "w1", "--json")

    assert (ended.code, ended.error["code"], sorted(ended.error["details"]["ids"])) == (2, "ambiguous", ids)


@pytest.mark.parametrize("wanted", ["w9", "999999", ""])
def test_a_worker_that_is_not_there_is_not_found(manage, wanted):
    assert manage("worker", "drain", wanted).code == 6


def test_an_id_that_no_database_has_is_a_mistake_of_the_command_line(manage):
    assert manage("worker", "drain", "9" * 19).code == 2


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
    assert "argument --slots: must be KIND=NUMBER, with a kind of build, delivery, errand, job_run, run" in ended.err
    assert "not 'nothing=1'. See `manage.py worker --help`." in ended.err


def test_where_no_kind_has_slots_the_refusal_says_so(manage, monkeypatch):
    monkeypatch.setattr("work.management.commands.worker.all_work_types", lambda: iter(()))

    ended = manage("worker", "--slots", "run=2")

    assert ended.code == 2
    assert "cannot be 'run=2': no kind of work has threads" in ended.err
