import json
from typing import Any

from ninja.renderers import JSONRenderer
from ninja.responses import NinjaJSONEncoder

from work.operations import encoding


class Encoder(encoding.Encoder, NinjaJSONEncoder):
    """Encodes the types that ninja knows, but times in ADE's format."""


class Renderer(JSONRenderer):
    encoder_class = Encoder


def text_of(data: Any, separators: tuple[str, str] | None = None) -> str:
    return json.dumps(data, cls=Encoder, separators=separators)
