"""JSON values for programs. Times are in UTC and keep their microseconds."""

from datetime import UTC, datetime
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder


def moment(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


class Encoder(DjangoJSONEncoder):
    def default(self, o: Any) -> Any:
        # Django's encoder truncates microseconds. A client that asks for the rows after a truncated time would get
        # wrong results.
        return moment(o) if isinstance(o, datetime) else super().default(o)
