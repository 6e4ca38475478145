"""Calls external services through their official clients, each in a limited child process of its own.

A child receives its order as one JSON object on standard input. The order includes the key of the service, which must
not appear in arguments or the environment, where others could read it. The child reports its outcome as an event. Only
these children import the other modules of this package.
"""

from typing import NamedTuple

# The service that reads documents replaces this file, which ADE's own extractor left in the working directory.
PAGES = "pages.json"
# The service that makes vectors reads TEXTS and writes VECTORS.
TEXTS = "texts.json"
VECTORS = "vectors.bin"

_PROGRAM = (
    "import sys; sys.path.append(sys.argv.pop(1)); "
    "from ade_services.child import main; from ade_services.{module} import work; main(work)"
)


class Asking(NamedTuple):
    service: str
    # Started like the extractor's PROGRAM: the argument after the code is appended to sys.path.
    program: str


DOCUMENT_INTELLIGENCE = Asking("Azure Document Intelligence", _PROGRAM.format(module="document_intelligence"))
OPENAI = Asking("OpenAI", _PROGRAM.format(module="openai_embeddings"))
