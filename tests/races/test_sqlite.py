import pytest
from django.conf import settings
from django.db import connection, transaction

from runs import lifecycle as runs
from runs.models import Run
from tests.factories import BuildFactory, ConfigurationFactory, DocumentFactory, ErrandFactory
from tests.races.invariants import assert_all_hold
from tests.races.test_claims import work_off
from tests.testwork import lifecycle as errands
from tests.testwork.models import Errand
from work import lifecycle
from work.sql.contention import Contended

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.only_on("sqlite")]

HOLD = """
import sqlite3, sys, time
database = sqlite3.connect(sys.argv[1], isolation_level=None)
for seconds in sys.argv[2:]:
    database.execute("BEGIN IMMEDIATE")
    print("true", flush=True)
    time.sleep(float(seconds))
    database.execute("COMMIT")
    time.sleep(0.05)
"""


def main(errand, times):
    """Run in another process: read a value and write it back plus one, each time in one transaction."""
    for _ in range(int(times)):
        with transaction.atomic():
            row = Errand.objects.get(pk=errand)
            Errand.objects.filter(pk=errand).update(result=str(int(row.result) + 1))


def test_transactions_begin_as_writers_and_readers_do_not_wait_for_them():
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA journal_mode")
        assert cursor.fetchone() == ("wal",)
        cursor.execute("PRAGMA foreign_keys")
        assert cursor.fetchone() == (1,)
    assert settings.DATABASES["default"]["OPTIONS"]["transaction_mode"] == "IMMEDIATE"
    assert settings.DATABASES["default"].get("ATOMIC_REQUESTS", False) is False


def test_two_processes_that_read_and_then_write_lose_nothing(programs):
    row = ErrandFactory(result="0")

    started = [programs.main(__name__, row.pk, 1000) for _ in range(2)]

    assert [program.code() for program in started] == [0, 0], [program.logged() for program in started]
    row.refresh_from_db()
    assert row.result == "2000"


@pytest.mark.parametrize(
    "seconds", [["0.2", "1"], pytest.param(["0.2", "1", "2.5", "5"] * 2, marks=pytest.mark.long, id="long")]
)
def test_nothing_is_lost_while_another_process_holds_the_write_lock(programs, threads, seconds):
    configuration = ConfigurationFactory()
    BuildFactory(configuration=configuration, status="ready")
    papers = [DocumentFactory(workspace=configuration.workspace, status="processed") for _ in range(4)]
    runs.submit_many(configuration, papers * 5, actor="olga")
    holder = programs.start("-c", HOLD, connection.settings_dict["NAME"], *seconds)
    assert holder.line()

    def submit():
        return [runs.submit(configuration, paper, actor="olga").pk for paper in papers * 2]

    def cancel():
        return [runs.cancel(run, actor="olga") for run in Run.objects.all()[:3]]

    def claim():
        while holder.is_alive():
            work_off("w1@here:1:boot1")

    answers = threads.together([submit, claim, submit, claim, cancel, submit])
    work_off("w1@here:1:boot1")

    assert not [answer for answer in answers if isinstance(answer, Exception)]
    assert holder.code() == 0
    assert Run.objects.count() == 20 + 3 * 8
    assert_all_hold(quiet=True)


def test_a_statement_outside_of_a_transaction_waits_for_the_lock_too(programs, threads):
    row = ErrandFactory()
    holder = programs.start("-c", HOLD, connection.settings_dict["NAME"], "0.3")
    assert holder.line()

    assert Errand.objects.filter(pk=row.pk).update(result="waited") == 1


def test_a_claim_that_waited_in_vain_is_contention_and_not_an_error(threads):
    row = ErrandFactory()

    def claim_impatiently():
        connection.ensure_connection()
        connection.connection.execute("PRAGMA busy_timeout = 50")
        return errands.claim_next("w1@here:1:boot1")

    locked = threads.hold(lambda: lifecycle.record(errands.ERRAND, row.pk, "NOTED"))
    claim = threads.start(claim_impatiently)
    met = claim.error()
    locked.commit()

    assert isinstance(met, Contended)
    assert "locked" in str(met)
    assert errands.claim_next("w1@here:1:boot1").id == row.pk
    assert_all_hold()
