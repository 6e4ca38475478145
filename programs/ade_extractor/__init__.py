"""Reads documents in a limited child process of its own, without Django: text, words with their places, and tables.

`extract INPUT --type TYPE --first N --last M --output DIRECTORY` writes pages.json. `digest INPUT --type TYPE PAGES…`
turns such files into what is searched. `draw INPUT --type TYPE --page N` writes preview.png, and `peek` writes as much
of a page as a screen shows to peek.json.

`serve DESCRIPTOR` waits with all readers imported. A process that it forks reads a list of such arguments from each
line of its standard input until the end. A failure is reported as an event with a message for people, and ends the
process. Only this child imports the other modules of this package.
"""

import shutil
from importlib.util import find_spec

# The version of pages.json. Outputs of another version are made again.
VERSION = 2
OUTPUT = "pages.json"
DIGEST = "digest.json"
# A picture of one page, for the types in DRAWN.
PREVIEW = "preview.png"
# The beginning of one page, with at most this many rows and columns of its first table.
PEEK = "peek.json"
PEEKED_ROWS, PEEKED_COLUMNS = 100, 40
DRAWN = frozenset({"application/pdf", "image/png", "image/jpeg", "image/tiff", "application/xml"})
# The number of the last page that was read, to explain where a failed process stopped.
PROGRESS = "progress"
# The event that ends each piece of work; a fork of `serve` then waits for the next one.
DONE = "done"
# Run with `python -I -X utf8 -c`, with the folder that contains this package as the first argument. The folder goes to
# the end of the path, so that nothing in it hides a library.
PROGRAM = "import sys; sys.path.append(sys.argv.pop(1)); from ade_extractor.main import main; main()"
# Imported by name, because most readers take longer to import than a page takes to read.
READERS = {
    "application/pdf": "ade_extractor.pdf",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "ade_extractor.word",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "ade_extractor.workbook",
    "application/vnd.ms-excel": "ade_extractor.workbook",
    "application/vnd.oasis.opendocument.spreadsheet": "ade_extractor.workbook",
    "text/csv": "ade_extractor.delimited",
    "application/xml": "ade_extractor.xml_file",
    "text/html": "ade_extractor.hypertext",
    "text/plain": "ade_extractor.plain",
    "message/rfc822": "ade_extractor.mail",
    "image/png": "ade_extractor.image",
    "image/jpeg": "ade_extractor.image",
    "image/tiff": "ade_extractor.image",
}


def ocr_engine() -> str | None:
    """Return the name of the OCR engine on this machine, or None. The check is cheap."""
    if find_spec("rapidocr") and find_spec("onnxruntime"):
        return "rapidocr"
    return "tesseract" if shutil.which("tesseract") else None
