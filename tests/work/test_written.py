import json
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

from work.operations import written

NOON = datetime(2026, 3, 1, 12, 0, 0, 120, UTC)


def test_a_moment_keeps_its_digits():
    assert written.moment(NOON) == "2026-03-01T12:00:00.000120Z"
    assert datetime.fromisoformat(written.moment(NOON)) == NOON


def test_a_moment_is_written_in_utc_wherever_it_is_from():
    assert written.moment(NOON.astimezone(timezone(timedelta(hours=5, minutes=30)))) == written.moment(NOON)


def test_what_is_no_moment_is_written_as_django_writes_it():
    told = {"id": UUID(int=1), "day": NOON.date()}

    assert (
        json.dumps(told, cls=written.Encoder) == '{"id": "00000000-0000-0000-0000-000000000001", "day": "2026-03-01"}'
    )
