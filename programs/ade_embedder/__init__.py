"""Turns texts into vectors, in a limited child process of its own; only that child imports the other modules."""

# The model and its dimensions are stored with every vector, because vectors of different models must never be compared.
MODEL = "wordllama-l2-supercat-256"
DIMENSIONS = 256
# Started like the extractor's PROGRAM: the argument after the code is appended to sys.path.
PROGRAM = "import sys; sys.path.append(sys.argv.pop(1)); from ade_embedder.main import main; main()"
