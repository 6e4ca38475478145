"""Turns texts into vectors, in a child process of its own: the model takes more memory than all of a worker.

`texts.json` in the working directory is a list of texts; `vectors.bin` becomes their vectors, one behind the other, as
little-endian numbers of 32 bits.
"""

import json
from pathlib import Path

import numpy
import wordllama

from ade_embedder import DIMENSIONS

# So many at once: what is held in memory meanwhile does not grow with the document.
BATCH = 512


def main() -> None:
    texts = json.loads(Path("texts.json").read_bytes())
    # Its default looks beside the files that its own wheel carries, and then asks the network.
    model = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True, dim=DIMENSIONS)
    with Path("vectors.bin").open("wb") as file:
        for start in range(0, len(texts), BATCH):
            vectors = model.embed(texts[start : start + BATCH])
            lengths = numpy.linalg.norm(vectors, axis=1, keepdims=True)
            file.write((vectors / numpy.maximum(lengths, 1e-12)).astype("<f4").tobytes())


if __name__ == "__main__":
    main()
