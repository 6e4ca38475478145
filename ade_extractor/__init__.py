"""Reads documents: text, words with their places, tables. In a limited child process of its own, without Django.

`extract INPUT --type TYPE --first N --last M --output DIRECTORY` writes pages.json; `digest PAGES...` makes of some of
these what is searched; `draw INPUT --type TYPE --page N` writes preview.png, and `peek` as much of a page as a screen
shows, as peek.json. `serve DESCRIPTOR` waits with all readers imported; a process that it forks reads such arguments
from its standard input, a list in each line, until there are no more. What goes wrong is told as an event, in words for
people, and ends it. Nobody but that child imports the modules of this package.
"""

import shutil
from importlib.util import find_spec

# Of pages.json. Outputs of another version are made anew.
VERSION = 2
OUTPUT = "pages.json"
DIGEST = "digest.json"
# One page as people see it, of what has pages that look like something.
PREVIEW = "preview.png"
# The beginning of one page: of its first table, so many rows and columns at most.
PEEK = "peek.json"
PEEKED_ROWS, PEEKED_COLUMNS = 100, 40
DRAWN = frozenset({"application/pdf", "image/png", "image/jpeg", "image/tiff"})
# The number of the last page that has been read, for whoever wonders where it ended.
PROGRESS = "progress"
# The event that says of one piece of work that it is done: a fork of `serve` waits for the next one then.
DONE = "done"
# To be run with `python -I -X utf8 -c`; its first argument is the folder of this package. At the end of the path,
# so that nothing there hides a library.
PROGRAM = "import sys; sys.path.append(sys.argv.pop(1)); from ade_extractor.main import main; main()"
# Imported by name, because most of them take longer to import than a page to read.
READERS = {
    "application/pdf": "ade_extractor.pdf",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "ade_extractor.word",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "ade_extractor.workbook",
    "application/vnd.ms-excel": "ade_extractor.workbook",
    "application/vnd.oasis.opendocument.spreadsheet": "ade_extractor.workbook",
    "text/csv": "ade_extractor.delimited",
    "text/html": "ade_extractor.hypertext",
    "text/plain": "ade_extractor.plain",
    "message/rfc822": "ade_extractor.mail",
    "image/png": "ade_extractor.image",
    "image/jpeg": "ade_extractor.image",
    "image/tiff": "ade_extractor.image",
}


def ocr_engine() -> str | None:
    """What recognises text on this machine. Asking is cheap."""
    if find_spec("rapidocr") and find_spec("onnxruntime"):
        return "rapidocr"
    return "tesseract" if shutil.which("tesseract") else None
