"""Values in the format for programs: times are in UTC, with all digits."""

from datetime import UTC, datetime
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder


def moment(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


class Encoder(DjangoJSONEncoder):
    def default(self, o: Any) -> Any:
        # Django's encoder truncates microseconds. A client that asks for rows after such a time would then get wrong
        # results.
        return moment(o) if isinstance(o, datetime) else super().default(o)
