"""JSON as it is answered."""

import json
from datetime import datetime
from typing import Any

from ninja.renderers import JSONRenderer
from ninja.responses import NinjaJSONEncoder


class Encoder(NinjaJSONEncoder):
    def default(self, o: Any) -> Any:
        # Django's own leaves out the microseconds, and a slot that was asked for by hand would not be found by its own.
        if isinstance(o, datetime):
            return o.isoformat().replace("+00:00", "Z")
        return super().default(o)


class Renderer(JSONRenderer):
    encoder_class = Encoder


def text_of(data: Any, separators: tuple[str, str] | None = None) -> str:
    return json.dumps(data, cls=Encoder, separators=separators)
