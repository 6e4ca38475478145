"""Turns texts into vectors, in a limited child process of its own. Nobody but that child imports its modules."""

# What vectors are stored with: those of two models are never compared.
MODEL = "wordllama-l2-supercat-256"
DIMENSIONS = 256
# As that of the extractor.
PROGRAM = "import sys; sys.path.append(sys.argv.pop(1)); from ade_embedder.main import main; main()"
