"""Values as programs read them, whoever writes them: a time in UTC and with all its digits."""

from datetime import UTC, datetime
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder


def moment(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


class Encoder(DjangoJSONEncoder):
    def default(self, o: Any) -> Any:
        # Django's own cuts microseconds off, and what was made between two times that were read would not be found.
        return moment(o) if isinstance(o, datetime) else super().default(o)
