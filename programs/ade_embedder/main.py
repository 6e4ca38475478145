"""Turns texts into vectors, in a separate child process because the model takes more memory than a whole worker.

The child reads a list of texts from `texts.json` in the working directory. It writes their vectors to `vectors.bin` as
consecutive little-endian 32-bit floats, followed by their mean. Every vector has length 1.
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
from ade_keeper import fork_server

# Texts per call of the model. Because of the batches, memory use does not depend on the length of the document.
BATCH = 512


def main() -> None:
    """Embed the texts in the working directory. With `serve DESCRIPTOR`, fork a process for each request instead."""
    match sys.argv[1:]:
        case ["serve", descriptor]:
            fork_server.serve(int(descriptor), load, _become, EVENTS)
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
