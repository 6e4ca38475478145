"""Helpers of the extractor tests: the real child process, with the limits that documents sets."""

import json
import sys
from dataclasses import dataclass
from dataclasses import replace as changed
from pathlib import Path

from ade_extractor import OUTPUT, PROGRAM, ocr_engine
from documents import children
from documents.extraction.local import LIMITS
from work.processes.fork_server import ForkServer
from work.processes.supervise import Ended

ROOT = Path(__file__).parents[2]
PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
XLS = "application/vnd.ms-excel"
ODS = "application/vnd.oasis.opendocument.spreadsheet"
CSV, HTML, TXT, EML = "text/csv", "text/html", "text/plain", "message/rfc822"
PNG, JPEG, TIFF = "image/png", "image/jpeg", "image/tiff"
RAPIDOCR = "rapidocr"
NOBODY = (RAPIDOCR, "tesseract")
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
    pages = ["--first", str(first), "--last", str(last)]
    order = ["extract", str(file), "--type", content_type, *pages, "--output", str(directory), "--words", *options]
    events = []
    with children._single_order(order) as orders:
        told = {"cwd": directory, "stdin": orders.fileno(), "limits": limits, "on_event": events.append}
        with READERS.of(without).spawn(**told) as child:
            ended = child.wait()
    output = directory / OUTPUT
    return Outcome(ended, events, output.read_bytes() if output.exists() else None)


class Readers:
    """Keeps warm extractor programs, as a worker does: each fork of one reads one document."""

    def __init__(self):
        # The directory that contains all files that they read and write; a fixture sets it.
        self.folder = None
        self._warm = {}

    def of(self, without):
        warm = self._warm.get(tuple(without))
        if warm is None or not warm.is_free():
            if warm is not None:
                warm.close()
            # Loading the models takes longer than reading a page, so the warm process loads them once.
            models = ("ade_extractor.rapid",) if RAPIDOCR not in without and ocr_engine() == RAPIDOCR else ()
            command = [
                sys.executable,
                "-I",
                "-B",
                "-X",
                "utf8",
                "-c",
                program(without, models),
                str(ROOT / "programs"),
                "serve",
            ]
            options = {"env": children.VARIABLES, "readable": children._code()}
            warm = self._warm[tuple(without)] = ForkServer(command, cwd=self.folder, **options)
            assert warm.wait(lambda: None) is None
        return warm

    def close(self):
        for warm in self._warm.values():
            warm.close()
        self._warm.clear()


READERS = Readers()


def program(without=(), loaded=()):
    """Return the program with these OCR engines hidden, as if they were not installed. A forking program preloads the
    modules in `loaded`.
    """
    hide = f"import shutil, sys; away = {[*without]}; sys.modules.update(dict.fromkeys(away)); found = shutil.which"
    hide += "; shutil.which = lambda name: None if name in away else found(name)"
    load = "".join(f"import {module}; " for module in loaded)
    return f"{hide}; {PROGRAM.replace('main()', f'{load}main()')}"


def written(path, content):
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path
