"""What the tests of the extractor share: the real child, within the limits that documents has it in."""

import json
import sys
from dataclasses import dataclass
from dataclasses import replace as changed
from pathlib import Path

from ade_extractor import OUTPUT, PROGRAM
from documents.extraction.local import LIMITS
from work import supervise
from work.supervise import Ended

ROOT = Path(__file__).parents[2]
PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
XLS = "application/vnd.ms-excel"
ODS = "application/vnd.oasis.opendocument.spreadsheet"
CSV, HTML, TXT, EML = "text/csv", "text/html", "text/plain", "message/rfc822"
PNG, JPEG, TIFF = "image/png", "image/jpeg", "image/tiff"
NOBODY = ("rapidocr", "tesseract")
WITHIN = changed(LIMITS, wall_seconds=600, cpu_seconds=60)


@dataclass
class Outcome:
    ended: Ended
    events: list[dict[str, object]]
    output: bytes | None

    @property
    def document(self):
        assert self.ended.returncode == 0, (self.ended, self.events)
        return json.loads(self.output)

    @property
    def pages(self):
        return self.document["pages"]

    @property
    def failure(self):
        (failed,) = [event for event in self.events if event["kind"] == "failed"]
        assert (self.ended.returncode, self.output) == (1, None)
        return failed

    @property
    def code(self):
        assert self.failure["permanent"] is True
        return self.failure["code"]


def extract(file, content_type, first=1, last=100_000, *, directory=None, limits=WITHIN, without=(), options=()):
    directory = directory or file.parent / f"{file.name}.out"
    directory.mkdir(exist_ok=True)
    command = [sys.executable, "-I", "-X", "utf8", "-c", program(without), str(ROOT), "extract", str(file)]
    command += [
        "--type",
        content_type,
        "--first",
        str(first),
        "--last",
        str(last),
        "--output",
        str(directory),
        "--words",
        *options,
    ]
    events = []
    ended = supervise.run(command, cwd=directory, limits=limits, on_event=events.append, readable=[file])
    output = directory / OUTPUT
    return Outcome(ended, events, output.read_bytes() if output.exists() else None)


def program(without=()):
    """As on a machine that does not have these engines of OCR."""
    hide = f"import shutil, sys; away = {[*without]}; sys.modules.update(dict.fromkeys(away)); found = shutil.which"
    return f"{hide}; shutil.which = lambda name: None if name in away else found(name); {PROGRAM}"


def written(path, content):
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path
