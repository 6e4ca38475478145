"""JSON of responses."""

import json
from typing import Any

from ninja.renderers import JSONRenderer
from ninja.responses import NinjaJSONEncoder

from work.operations import encoding


class Encoder(encoding.Encoder, NinjaJSONEncoder):
    """Adds ADE's format of times to the types that ninja can encode."""


class Renderer(JSONRenderer):
    encoder_class = Encoder


def text_of(data: Any, separators: tuple[str, str] | None = None) -> str:
    return json.dumps(data, cls=Encoder, separators=separators)
