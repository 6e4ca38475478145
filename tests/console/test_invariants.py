import time
from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission
from django.db import DatabaseError

from console import invariants
from console.models import PromiseCheck
from tests.factories import RunFactory, UserFactory, write
from work import clock
from work.invariants import Invariant, all_invariants

HOSTILE = "<script>alert(1)</script>"
# Runs longer than any test waits, on each of the databases.
ENDLESS = """
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000000000)
    SELECT 'run', MAX(i) FROM n HAVING MAX(i) < 0"""

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


@pytest.fixture
def warden(olga):
    olga.user_permissions.add(Permission.objects.get(codename="change_queue"))
    return olga


@pytest.fixture
def promised(monkeypatch):
    """Return a function that replaces all invariants: name=SQL that finds the breaches."""

    def promised(**sql):
        of = [Invariant(name, f"{name} holds.", lambda dialect, text=text: text, HOSTILE) for name, text in sql.items()]
        monkeypatch.setattr(invariants, "all_invariants", lambda: iter(of))

    return promised


def row(kind, *ids):
    return " UNION ALL ".join(f"SELECT '{kind}', {id}" for id in ids)


NOTHING = "SELECT 'run', id FROM runs WHERE id < 0"


def states():
    return {result.invariant.name: result.state for result in invariants.all_results()}


def test_a_promise_that_nobody_has_checked_says_so(seen_by, ravi):
    page = seen_by(ravi, "/promises/")
    text = page.content.decode()

    assert {result.state for result, _ in page.context["results"]} == {"never"}
    assert len(page.context["results"]) == len(list(all_invariants()))
    assert "A document has at most one running run." in text
    assert "Run a check to see whether they hold." in text


def test_to_look_at_the_page_checks_nothing(seen_by, ravi, promised):
    promised(ill="SELECT nonsense")

    seen_by(ravi, "/promises/")

    assert not PromiseCheck.objects.exists()


def test_pressing_the_button_checks_all_of_them(pressed_by, warden):
    page = pressed_by(warden, "/promises/check/")

    number = len(list(all_invariants()))
    assert page.said == [f"Checked {number} of {number} invariants; none is broken."]
    assert set(states().values()) == {"holds"}
    assert set(PromiseCheck.objects.values_list("checked_by", flat=True)) == {"olga"}


def test_one_that_is_broken_names_who_breaks_it(pressed_by, warden, seen_by, ravi, workspace, promised):
    mine, other = RunFactory(configuration__workspace=workspace), RunFactory()
    promised(good=NOTHING, broken=row("run", mine.pk, other.pk))

    page = pressed_by(warden, "/promises/check/")
    text = seen_by(ravi, "/promises/").content.decode()

    assert page.said == ["Checked 2 of 2 invariants; 1 broken."]
    assert states() == {"broken": "broken", "good": "holds"}
    assert f'<a href="/runs/{mine.pk}/">run {mine.pk}</a>' in text
    assert f"run {other.pk}<" not in text
    assert "run of another workspace" in text
    assert HOSTILE not in text


def test_no_more_offenders_are_kept_than_are_named(pressed_by, warden, promised):
    promised(broken=row("run", *range(1, invariants.MOST_OFFENDERS + 10)))

    text = pressed_by(warden, "/promises/check/").content.decode()

    assert len(PromiseCheck.objects.get().offenders) == invariants.MOST_OFFENDERS + 1
    assert "and more" in text


def test_one_that_takes_too_long_is_given_up(promised, monkeypatch, transactional_db):
    monkeypatch.setattr(invariants, "SECONDS_OF_ONE", 0.2)
    promised(endless=ENDLESS, good=NOTHING)

    began = time.monotonic()
    done = invariants.check_all("olga")

    assert time.monotonic() - began < 60
    assert (done.checked, done.failed) == (1, 1)
    assert states() == {"endless": "unknown", "good": "holds"}
    assert "The check was stopped after" in PromiseCheck.objects.get(name="endless").trouble


def test_one_that_cannot_be_asked_is_no_promise_that_holds(pressed_by, warden, promised, monkeypatch):
    def fail(self, most):
        raise DatabaseError(f"no such table: {HOSTILE}\n")

    promised(good=NOTHING)
    monkeypatch.setattr(Invariant, "breaches", fail)

    page = pressed_by(warden, "/promises/check/")

    assert page.said == ["Checked 0 of 1 invariants; 1 could not be checked."]
    assert states() == {"good": "unknown"}
    assert HOSTILE not in page.content.decode()


def test_what_was_found_stays_when_nothing_is_found_now(promised, monkeypatch, seen_by, ravi):
    run = RunFactory()
    promised(broken=row("run", run.pk))
    invariants.check_all("olga")
    promised(broken="SELECT nonsense, nothing FROM runs")
    invariants.check_all("olga")

    check = PromiseCheck.objects.get()

    assert check.offenders == [["run", run.pk]]
    assert check.trouble
    assert states() == {"broken": "unknown"}
    assert "Was broken by:" in seen_by(ravi, "/promises/").content.decode()


def test_those_that_had_no_time_come_first_the_next_time(promised, monkeypatch):
    promised(first=NOTHING, second=NOTHING)

    invariants.check_all("olga")
    write(PromiseCheck.objects.get(name="second"), tried_at=clock.now() - timedelta(days=1))

    assert [each.name for each in invariants._stalest_first(invariants.all_invariants())] == ["second", "first"]
    assert invariants.check_all("olga", seconds=0).left == 2


def test_nobody_checks_what_somebody_else_is_checking(promised):
    promised(good=NOTHING)
    check = PromiseCheck.objects.create(name="good", began_at=clock.now())

    assert str(invariants.check_all("olga")) == "Checked 0 of 1 invariants; 1 left for the next check."

    write(check, began_at=clock.now() - invariants.FORGOTTEN - timedelta(seconds=1))
    assert invariants.check_all("olga").checked == 1


def test_the_button_is_for_whoever_may_change_the_queue(seen_by, pressed_by, olga, zed, promised):
    promised(good=NOTHING)
    root = UserFactory(is_superuser=True)

    assert "Check now" not in seen_by(olga, "/promises/").content.decode()
    assert "Check now" in seen_by(root, "/promises/").content.decode()
    assert [pressed_by(who, "/promises/check/").status_code for who in (olga, zed)] == [403, 403]
    assert not PromiseCheck.objects.exists()
    assert pressed_by(root, "/promises/check/").status_code == 200


def test_looking_at_the_button_does_nothing(seen_by, warden):
    assert seen_by(warden, "/promises/check/").status_code == 405


def test_strangers_are_told_nothing(seen_by, zed):
    assert seen_by(zed, "/promises/").status_code == 403


def test_promises_cost_few_queries(asks_at_most, ravi, promised):
    kinds = ("run", "build", "document", "job", "stage", "job_run", "due_slot", "webhook", "delivery")
    promised(broken=" UNION ALL ".join(row(kind, 1, 2) for kind in kinds))
    invariants.check_all("olga")

    asks_at_most(15, ravi, "/promises/")
