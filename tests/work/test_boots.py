import pytest

from tests.factories import ErrandFactory, claim_of, columns_of, events_of, told, write
from tests.testwork import lifecycle as errands
from work import boots, clock, recovery
from work.models import Event, Worker
from work.work_types import work_type_named

# Larger than any PID on Linux.
NO_PID = 2**22 + 1

pytestmark = pytest.mark.django_db


@pytest.fixture
def kinds():
    return [work_type_named("errand")]


def booted(name, boot_id, *, alive=False, **columns):
    """Register an earlier boot on this host; its process is this one if `alive`, otherwise missing."""
    row = boots.register(name, boot_id, {"errand": 2})
    return write(row, **{"pid": row.pid if alive else NO_PID, **columns})


def told_of(worker):
    rows = Event.objects.filter(subject_kind="worker", subject_id=worker.pk).order_by("sequence")
    return list(rows.values_list("sequence", "kind"))


def test_a_boot_registers_who_it_is():
    row = boots.register("w1", "b1", {"errand": 2})

    assert row.owner == f"w1@{row.host}:{row.pid}:b1"
    assert (row.lanes, row.stopped_at, row.started_at) == ({"errand": 2}, None, row.heartbeat_at)
    assert told_of(row) == [(1, "WORKER_STARTED")]


def test_what_a_dead_boot_of_its_name_holds_is_recovered_at_once(kinds):
    earlier = booted("w1", "b1")
    errand = ErrandFactory(status="doing", owner=earlier.owner)
    now = boots.register("w1", "b2", {})

    assert boots.recover_earlier(now, kinds) == 1

    errand.refresh_from_db()
    earlier.refresh_from_db()
    assert errand.status == "queued"
    assert earlier.stopped_at is not None
    receipt = events_of(errand).last()
    assert (receipt.actor, receipt.data["rule"]) == (now.owner, recovery.EARLIER_BOOT)
    assert receipt.data["last_heartbeat_at"] == earlier.heartbeat_at.isoformat()


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("w2", {}),
        ("w1", {"alive": True}),
        ("w1", {"host": "elsewhere"}),
        ("w1", {"machine": "another boot of the kernel"}),
    ],
    ids=["another name", "alive", "another host", "another machine"],
)
def test_what_may_be_held_by_a_living_worker_is_left_to_its_lease(kinds, name, columns):
    other = booted(name, "b1", **columns)
    errand = ErrandFactory(status="doing", owner=other.owner)
    before = columns_of(errand)

    assert boots.recover_earlier(boots.register("w1", "b2", {}), kinds) == 0

    other.refresh_from_db()
    assert columns_of(errand) == before
    assert other.stopped_at is None


def test_a_pid_that_belongs_to_another_process_by_now_is_a_dead_boot(kinds):
    earlier = booted("w1", "b1", alive=True, pid_started=1)
    ErrandFactory(status="doing", owner=earlier.owner)

    assert boots.recover_earlier(boots.register("w1", "b2", {}), kinds) == 1


def test_what_expired_is_recovered_at_a_boot_whoever_held_it(kinds):
    errand = ErrandFactory(status="doing", owner="w9@elsewhere:1:b9")
    write(errand, lease_expires_at=clock.now())

    assert boots.recover_earlier(boots.register("w1", "b1", {}), kinds) == 1


def test_its_own_claims_are_left_alone(kinds):
    now = boots.register("w1", "b1", {})
    errand = ErrandFactory(status="doing", owner=now.owner)

    assert boots.recover_earlier(now, kinds) == 0

    assert told(errand)[-1] == "ERRAND_STARTED"


def test_the_claim_of_a_dead_boot_is_worth_nothing_any_more(kinds):
    earlier = booted("w1", "b1")
    claim = claim_of(ErrandFactory(status="doing", owner=earlier.owner))
    boots.recover_earlier(boots.register("w1", "b2", {}), kinds)

    assert not errands.succeed(claim, "late")


def test_contention_is_told_of_the_worker():
    row = boots.register("w1", "b1", {})

    boots.record_contention(row, "errand: database is locked")

    event = Event.objects.get(subject_kind="worker", kind="SCHEDULER_CONTENTION")
    assert (event.subject_id, event.actor, event.message) == (row.pk, row.owner, "errand: database is locked")


def test_a_worker_signs_off():
    row = write(boots.register("w1", "b1", {}), doing=["errand 1"])

    boots.sign_off(row)

    row.refresh_from_db()
    assert row.stopped_at is not None
    assert row.doing == []
    assert told_of(row) == [(1, "WORKER_STARTED"), (2, "WORKER_STOPPED")]
    assert not Worker.objects.alive().exists()
