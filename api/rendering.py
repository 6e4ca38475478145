"""JSON as it is answered."""

import json
from typing import Any

from ninja.renderers import JSONRenderer
from ninja.responses import NinjaJSONEncoder

from work import written


class Encoder(written.Encoder, NinjaJSONEncoder):
    """What ninja knows of, and times as they are written everywhere."""


class Renderer(JSONRenderer):
    encoder_class = Encoder


def text_of(data: Any, separators: tuple[str, str] | None = None) -> str:
    return json.dumps(data, cls=Encoder, separators=separators)
