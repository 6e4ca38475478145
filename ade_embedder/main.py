"""Turns texts into vectors, in a child process of its own: the model takes more memory than all of a worker.

`texts.json` in the working directory is a list of texts; `vectors.bin` becomes their vectors, one behind the other, as
little-endian numbers of 32 bits, and behind them their mean. All have length 1.
"""

import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any, NoReturn

import numpy

from ade_embedder import DIMENSIONS
from ade_embedder.model import load, of_length_1
from ade_engine.channel import VARIABLE as EVENTS
from ade_keeper import zygote

# So many at once: what is held in memory meanwhile does not grow with the document.
BATCH = 512


def main() -> None:
    """Once, or with `serve DESCRIPTOR` in a fork for each time."""
    match sys.argv[1:]:
        case ["serve", descriptor]:
            zygote.serve(int(descriptor), load, _become, EVENTS)
        case _:
            _embed(load())


def _become(model: Any) -> NoReturn:
    try:
        _embed(model)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)


def _embed(model: Any) -> None:
    texts = json.loads(Path("texts.json").read_bytes())
    total = numpy.zeros(DIMENSIONS)
    with Path("vectors.bin").open("wb") as file:
        for start in range(0, len(texts), BATCH):
            vectors = of_length_1(model.embed(texts[start : start + BATCH]))
            total += vectors.sum(axis=0)
            file.write(vectors.tobytes())
        file.write(of_length_1(total[None, :]).tobytes())
