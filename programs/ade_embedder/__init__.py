"""Turns texts into vectors: texts of documents in a limited child process, search queries in the calling process.

The other modules import numpy and the model's library, so they are imported only where and when they are needed.
"""

# The model and its dimensions are stored with every vector, because vectors of different models must never be compared.
MODEL = "wordllama-l2-supercat-256"
DIMENSIONS = 256
# The code that starts the program, as for the extractor: the argument after the code is appended to sys.path.
PROGRAM = "import sys; sys.path.append(sys.argv.pop(1)); from ade_embedder.main import main; main()"
