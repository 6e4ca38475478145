"""Asks services outside, through the clients that they give out, each in a limited child process of its own.

What such a child is to do comes to it on its standard input as one JSON object, the key of the service in it, and is
in no argument and no environment that others could read. How that ended is told as an event. Nobody but those children
imports the modules of this package.
"""

from typing import NamedTuple

# Of who reads documents: what it leaves in its working directory, over what the extractor of ADE has left there.
PAGES = "pages.json"
# Of who makes vectors: what it finds, and what it leaves.
TEXTS = "texts.json"
VECTORS = "vectors.bin"

_PROGRAM = (
    "import sys; sys.path.append(sys.argv.pop(1)); "
    "from ade_services.child import main; from ade_services.{module} import work; main(work)"
)


class Asking(NamedTuple):
    service: str
    # As that of the extractor.
    program: str


DOCUMENT_INTELLIGENCE = Asking("Azure Document Intelligence", _PROGRAM.format(module="document_intelligence"))
OPENAI = Asking("OpenAI", _PROGRAM.format(module="openai_embeddings"))
