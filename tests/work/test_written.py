import json
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

from work.operations import encoding

NOON = datetime(2026, 3, 1, 12, 0, 0, 120, UTC)


def test_a_moment_keeps_its_digits():
    assert encoding.moment(NOON) == "2026-03-01T12:00:00.000120Z"
    assert datetime.fromisoformat(encoding.moment(NOON)) == NOON


def test_a_moment_is_written_in_utc_wherever_it_is_from():
    assert encoding.moment(NOON.astimezone(timezone(timedelta(hours=5, minutes=30)))) == encoding.moment(NOON)


def test_what_is_no_moment_is_written_as_django_writes_it():
    told = {"id": UUID(int=1), "day": NOON.date()}

    assert (
        json.dumps(told, cls=encoding.Encoder) == '{"id": "00000000-0000-0000-0000-000000000001", "day": "2026-03-01"}'
    )
