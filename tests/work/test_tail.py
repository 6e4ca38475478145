import pytest
from django.db import connection, transaction

from tests.factories import ErrandFactory
from tests.stepping import until
from tests.testwork import lifecycle as errands
from work import lifecycle, tail
from work.models import Event
from work.tail import Position, Tail

pytestmark = pytest.mark.django_db(transaction=True)


def note(errand, message):
    assert lifecycle.record(errands.ERRAND, errand.pk, "NOTE", message=message)


def said(events):
    return [event.message for event in events if event.kind == "NOTE"]


def newest():
    return Event.objects.order_by("-id").values_list("id", flat=True)[0]


def read_all(tail, limit=500):
    found = []
    while events := tail.read(limit):
        found += events
    return found


@pytest.fixture
def a():
    return ErrandFactory()


@pytest.fixture
def b():
    return ErrandFactory()


def test_what_was_there_before_now_is_not_read(a):
    note(a, "before")
    tail = Tail(Position.now())

    note(a, "after")

    assert said(tail.read()) == ["after"]
    assert tail.read() == []


def test_an_event_comes_with_all_that_it_says(a):
    tail = Tail(Position.now())

    assert lifecycle.record(errands.ERRAND, a.pk, "NOTE", actor="olga", message="hello", data={"n": [1]})

    (event,) = tail.read()
    row = Event.objects.order_by("id").last()
    assert event == tuple(getattr(row, name) for name in event._fields)
    assert event.data == {"n": [1]}


def test_nothing_is_there_when_there_are_no_events():
    assert Position.now() == Position(0)
    assert Tail(Position.now()).read() == []


def test_from_the_beginning_all_is_read_in_batches(a):
    for n in range(7):
        note(a, str(n))
    tail = Tail(Position())

    assert [len(tail.read(3)) for _ in range(4)] == [3, 3, 2, 0]


def test_a_position_goes_on_where_another_tail_was(a):
    first = Tail(Position.now())
    note(a, "one")
    first.read()
    note(a, "two")

    second = Tail(Position.from_text(first.position.to_text()))

    assert said(second.read()) == ["two"]


@pytest.mark.only_on("postgresql")
def test_what_commits_late_is_read_late(a, b, threads):
    tail = Tail(Position.now())
    late = threads.hold(lambda: note(a, "late"))
    note(b, "early")
    assert said(tail.read()) == ["early"]
    note(b, "between")
    assert said(tail.read()) == ["between"]

    late.commit()

    assert said(tail.read()) == ["late"]
    assert tail.read() == []
    assert tail.position == Position(newest())


@pytest.mark.only_on("postgresql")
def test_what_was_being_written_before_now_is_read_when_it_commits(a, b, threads):
    late = threads.hold(lambda: note(a, "late"))
    note(b, "early")
    tail = Tail(Position.now())
    assert tail.read() == []

    late.commit()

    assert said(tail.read()) == ["late"]


@pytest.mark.only_on("postgresql")
def test_whoever_goes_on_elsewhere_still_reads_what_commits_late(a, b, threads):
    first = Tail(Position.now())
    late = threads.hold(lambda: note(a, "late"))
    note(b, "early")
    first.read()

    second = Tail(Position.from_text(first.position.to_text()))
    assert second.read() == []
    late.commit()

    assert said(second.read()) == ["late"]


@pytest.mark.only_on("postgresql")
def test_what_was_rolled_back_is_not_waited_for(a, b, threads):
    tail = Tail(Position.now())
    held = threads.hold(lambda: note(a, "never"))
    note(b, "early")
    tail.read()
    assert len(tail.position.gaps) == 1

    held.roll_back()

    # Other transactions of the server may be open for a moment.
    assert until(lambda: tail.read() == [] and tail.position.gaps == ())


@pytest.mark.only_on("postgresql")
def test_a_transaction_with_a_later_number_than_those_that_have_ended_is_waited_for(a, b, threads):
    """Transactions that have begun since a snapshot have higher numbers than its highest."""
    tail = Tail(Position.now())
    with transaction.atomic():
        connection.cursor().execute("SELECT pg_current_xact_id()")
        late = threads.hold(lambda: note(a, "late"))
        note(b, "early")
    assert said(tail.read()) == ["early"]
    assert tail.read() == tail.read() == []

    late.commit()

    assert said(tail.read()) == ["late"]


@pytest.mark.only_on("postgresql")
def test_events_of_one_row_come_in_order_whatever_commits_late(a, b, threads):
    tail = Tail(Position.now())
    found = []

    for n in range(5):
        late = threads.hold(lambda n=n: note(a, f"late {n}"))
        note(b, f"early {n}")
        found += tail.read(1)
        late.commit()
    found += read_all(tail, limit=2)

    found = [event for event in found if event.subject_id == a.pk]
    assert [event.sequence for event in found] == sorted(event.sequence for event in found)
    assert said(found) == [f"late {n}" for n in range(5)]


def test_writers_side_by_side_lose_nothing_and_nothing_comes_twice(threads):
    """Some writers roll back; the tail reads meanwhile and restarts from its stored position each time."""
    rows = [ErrandFactory() for _ in range(4)]
    position = Position.now()
    found = []

    def write(row):
        for n in range(25):
            with transaction.atomic():
                note(row, str(n))
                transaction.set_rollback(n % 5 == 0)

    writers = [threads.start(lambda row=row: write(row)) for row in rows]
    while any(writer.is_under_way() for writer in writers):
        reader = Tail(position)
        found += reader.read(7)
        position = Position.from_text(reader.position.to_text())
    found += read_all(Tail(position))

    for row in rows:
        assert [e.sequence for e in found if e.subject_id == row.pk] == list(range(2, 22))


@pytest.mark.parametrize(
    ("position", "text"),
    [
        (Position(), "0"),
        (Position(1042), "1042"),
        (Position(1042, ((1037, 1037), (1039, 1040))), "1042:1037,1039-1040"),
    ],
)
def test_a_position_is_kept_as_text(position, text):
    assert position.to_text() == text
    assert Position.from_text(text) == position


@pytest.mark.parametrize(
    "text",
    [
        "1000:" + ",".join(map(str, range(1, 200, 2))),
        "",
        "x",
        "-1",
        "1:",
        "1:2",
        "9:3-",
        "9:3-2",
        "9:5,4",
        "9:3-5,5-6",
        "9:9",
        "١",
        "1" * 19,
        "1\n",
        "9:1,",
        "1.0",
    ],
)
def test_no_other_text_is_a_position(text):
    with pytest.raises(ValueError, match=r"^(A position is written like|The gaps of a position must be)"):
        Position.from_text(text)


def test_a_text_with_too_many_gaps_goes_back_and_leaves_none_out():
    gaps = tuple((n, n) for n in range(10, 400, 2))

    position = Position.from_text(Position(1000, gaps).to_text())

    assert position.gaps == gaps[: tail.GAPS_IN_TEXT]
    assert position.last == gaps[tail.GAPS_IN_TEXT][0] - 1


def test_a_position_tells_what_was_read():
    position = Position(10, ((4, 5),))

    assert [id for id in range(1, 13) if id not in position] == [4, 5, 11, 12]
    assert position.floor == 3
    assert position.after(4) == Position(10, ((5, 5),))
    assert position.after(5).after(4) == Position(10)
    assert position.after(13) == Position(13, ((4, 5), (11, 12)))
    assert Position(9, ((2, 6),)).after(4) == Position(9, ((2, 3), (5, 6)))


@pytest.mark.usefixtures("history_is_open")
def test_gaps_are_not_kept_without_bound(a, monkeypatch):
    monkeypatch.setattr(tail, "MOST_GAPS", 3)
    monkeypatch.setattr(tail, "_is_settled", lambda gap, look: False)
    for n in range(10):
        note(a, str(n))
    first = Event.objects.order_by("id").first().id
    Event.objects.filter(id__in=range(first, first + 10, 2)).delete()

    reader = Tail(Position(first - 1))
    reader.read()

    assert len(reader.position.gaps) <= 3
