from datetime import timedelta

import pytest
from django.conf import settings

from tests import factories
from tests.factories import MOVES, columns_of, events_of, holder_for, must_say, verbs_between, write
from tests.writers import WRITERS
from work import clock, lifecycle
from work.changes import INFO, WARNING
from work.claims import LeaseHolder
from work.models import Event, Work
from work.sql import portable, returning
from work.state_machine import By

FACTORIES = {factory._meta.model: factory for factory in factories.SubjectFactory.__subclasses__()}
TABLES = list(MOVES.values())


def statuses_of(states):
    return {states.initial, *(status for verb in states for status in (*states[verb].origins, states[verb].target))}


EVERY_MOVE = [(states, verb, status) for states in TABLES for verb in states for status in sorted(statuses_of(states))]


def cases(*, legal):
    chosen = [(m, verb, status) for m, verb, status in EVERY_MOVE if (status in m[verb].origins) == legal]
    return [pytest.param(*case, id=f"{case[0].kind}-{case[1]}-from-{case[2]}") for case in chosen]


@pytest.fixture(params=WRITERS)
def writer(request, monkeypatch, db):
    monkeypatch.setattr(lifecycle, "_writer", lambda: request.param)


def make(states, row, verb):
    """Make the move with the columns that constraints require."""
    sets = must_say(states.model, states[verb].target)
    holder = holder_for(row, states[verb])
    return lifecycle.move(states, row.pk, verb, holder=holder, actor="w9", message="why", data={"n": 1}, **sets)


@pytest.mark.parametrize("states", TABLES, ids=lambda states: states.kind)
def test_every_status_can_be_reached(states):
    for status in statuses_of(states):
        verbs_between(states, states.initial, status)


@pytest.mark.parametrize(("states", "verb", "status"), cases(legal=True))
def test_a_move_goes_from_its_origin_to_its_target_and_tells_so_once(states, verb, status, writer):
    row = FACTORIES[states.model](status=status)
    before = columns_of(row)

    assert make(states, row, verb)

    after, event = columns_of(row), events_of(row).last()
    assert after["status"] == states[verb].target
    assert after["last_sequence"] == before["last_sequence"] + 1 == events_of(row).count() == event.sequence
    assert (event.kind, event.from_status, event.to_status) == (states[verb].event, status, states[verb].target)
    assert (event.actor, event.message, event.data) == ("w9", "why", {"n": 1})
    assert event.claim_token == after.get("claim_token", 0)
    assert event.level == (WARNING if must_say(states.model, states[verb].target).get("failure_type") else INFO)


@pytest.mark.parametrize(("states", "verb", "status"), cases(legal=True))
def test_a_move_leaves_the_common_columns_as_its_ends_demand(states, verb, status, writer):
    if not issubclass(states.model, Work):
        return
    row = FACTORIES[states.model](status=status)
    if status == states.claimed:
        write(row, process={"pid": 1})
    before, model, target = columns_of(row), states.model, states[verb].target
    earliest = clock.now()

    make(states, row, verb)

    after = columns_of(row)
    claims = target == states.claimed != status
    stays = status == target
    assert after["claim_token"] == before["claim_token"] + claims
    if claims:
        lease = timedelta(seconds=settings.ADE_LEASE_SECONDS)
        assert after["lease_owner"] == "w9"
        assert earliest + lease <= after["lease_expires_at"] <= clock.now() + lease
    elif stays:
        assert {n: after[n] for n in ("lease_owner", "lease_expires_at", "process")} == {
            n: before[n] for n in ("lease_owner", "lease_expires_at", "process")
        }
    else:
        assert (after["lease_owner"], after["lease_expires_at"], after["process"]) == (None, None, None)
    if target in model.TERMINAL:
        assert earliest <= after["finished_at"] <= clock.now()
    else:
        assert after["finished_at"] is None
    if target == model.ACTIVE and not stays:
        assert earliest <= after["started_at"] <= clock.now()
    elif target in model.TERMINAL or stays:
        assert after["started_at"] == before["started_at"]
    else:
        assert after["started_at"] is None


@pytest.mark.parametrize(("states", "verb", "status"), cases(legal=True))
def test_a_move_changes_no_other_column(states, verb, status, writer):
    row = FACTORIES[states.model](status=status)
    before = columns_of(row)

    make(states, row, verb)

    common = {"status", "last_sequence", "started_at", "finished_at", "lease_owner", "lease_expires_at", "claim_token"}
    common |= {"last_event_at"}
    said = set(must_say(states.model, states[verb].target))
    assert {name for name, value in columns_of(row).items() if value != before[name]} <= common | said


@pytest.mark.parametrize(("states", "verb", "status"), cases(legal=False))
def test_a_move_from_another_status_answers_false_and_changes_nothing(states, verb, status, writer):
    row = FACTORIES[states.model](status=status)
    before = columns_of(row)

    assert not make(states, row, verb)

    assert columns_of(row) == before
    assert events_of(row).count() == before["last_sequence"]


@pytest.mark.parametrize("states", TABLES, ids=lambda states: states.kind)
def test_a_move_of_a_row_that_is_not_there_answers_false(states, writer):
    for verb in states:
        holder = LeaseHolder("w9", 1) if states[verb].by is By.HOLDER else None
        assert not lifecycle.move(states, 2**40, verb, holder=holder, **must_say(states.model, states[verb].target))

    assert not Event.objects.filter(subject_kind=states.kind).exists()


def test_a_move_whose_guard_does_not_hold_changes_nothing(writer):
    states = next(states for states in TABLES if states.kind == "errand")
    row = FACTORIES[states.model](status="doing")
    before, holder = columns_of(row), holder_for(row, states["succeed"])

    assert not lifecycle.move(states, row.pk, "succeed", holder=holder, guards={"cancel_requested_at__isnull": False})
    assert not lifecycle.move(states, row.pk, "succeed", holder=holder, guards={"claim_token__lt": 1})
    assert not lifecycle.move(states, row.pk, "succeed", holder=holder, guards={"script": "raise"})

    assert columns_of(row) == before


def test_a_move_and_its_event_are_both_written_or_neither(writer, monkeypatch):
    states = next(states for states in TABLES if states.kind == "errand")
    row = FACTORIES[states.model]()
    before = columns_of(row)
    # An event with this number already exists.
    Event(subject_kind="errand", subject_id=row.pk, sequence=2, at=clock.now(), kind="NOTE").save()

    with pytest.raises(lifecycle.IntegrityError), lifecycle.transaction.atomic():
        make(states, row, "cancel")

    assert columns_of(row) == before


@pytest.mark.only_on(*returning.FAST_VENDORS)
@pytest.mark.parametrize("states", TABLES, ids=lambda states: states.kind)
def test_both_writers_write_the_same(states, db, monkeypatch):
    moment = clock.now()
    monkeypatch.setattr(clock, "now", lambda: moment)
    written = []

    for writer in (returning, portable):
        monkeypatch.setattr(lifecycle, "_writer", lambda writer=writer: writer)
        for verb, status in [(verb, states[verb].origins[0]) for verb in states]:
            row = FACTORIES[states.model](status=status)
            make(states, row, verb)
            written.append((writer, verb, described(row)))

    fast, slow = ([(verb, row) for by, verb, row in written if by is writer] for writer in (returning, portable))
    assert fast == slow


# Columns that identify a row, and columns whose defaults read the clock.
OWN = {"name", "file", "sha256", "segment", "fingerprint", "job_name", "scheduled_for", "queued_at", "next_attempt_at"}
OWN |= {"event_id", "payload"}


def described(row):
    own = OWN | {f.attname for f in row._meta.concrete_fields if f.primary_key or f.is_relation}
    columns = {name: value for name, value in columns_of(row).items() if name not in own}
    return columns, [{**event, "id": 0, "subject_id": 0} for event in events_of(row).values()]


@pytest.mark.parametrize("states", TABLES, ids=lambda states: states.kind)
def test_the_table_and_the_model_say_the_same(states):
    model = states.model
    if hasattr(model, "Status"):
        assert statuses_of(states) == set(model.Status.values)
    assert set(words_the_database_knows(model)) == statuses_of(states)
    if not issubclass(model, Work):
        return
    leaves = {origin for verb in states for origin in states[verb].origins}
    by_holder = {states[verb].origins for verb in states if states[verb].by in ("the worker that holds the claim",)}
    assert statuses_of(states) - leaves <= model.TERMINAL
    assert by_holder <= {(model.CLAIMED,)}
    assert model.CLAIMED in (None, model.ACTIVE)
    assert model.ACTIVE not in model.TERMINAL


def words_the_database_knows(model):
    (known,) = [c for c in model._meta.constraints if c.name.endswith("status_is_known")]
    ((_, words),) = known.condition.children
    return words


@pytest.mark.parametrize("states", [m for m in TABLES if issubclass(m.model, Work)], ids=lambda states: states.kind)
def test_the_constraints_name_the_claimed_and_the_terminal_statuses(states):
    model = states.model
    conditions = {
        c.name.removeprefix(f"{states.kind}_"): repr(getattr(c, "condition", "")) for c in model._meta.constraints
    }
    lease = conditions["lease_is_set_exactly_while_claimed"]
    end = conditions["finished_at_is_set_exactly_at_the_end"]

    assert ("'status'" in lease) == (model.CLAIMED is not None)
    assert model.CLAIMED is None or f"('status', '{model.CLAIMED}')" in lease
    assert f"('status__in', {sorted(map(str, model.TERMINAL))})" in end


def test_a_move_of_the_holder_needs_a_holder_and_no_other_move_takes_one(db):
    states = next(states for states in TABLES if states.kind == "errand")
    row = FACTORIES[states.model](status="doing")

    with pytest.raises(
        TypeError, match="errand succeed is made by the worker that holds the claim, so it needs a holder"
    ):
        lifecycle.move(states, row.pk, "succeed")
    with pytest.raises(TypeError, match="errand release is made by recovery, so it must have no holder"):
        lifecycle.move(states, row.pk, "release", holder=LeaseHolder(row.lease_owner, row.claim_token))
