"""What is shown of a file that a run has made. Its rules may mean harm: what it is, its content says and not its name;
pictures and tables are made of it by a child within limits, and all else is text or is not shown.
"""

import codecs
from dataclasses import dataclass
from typing import IO, NamedTuple, cast

import structlog
from django.core.files.storage import default_storage
from django.template.defaultfilters import filesizeformat

from console import pretty
from documents import previews, sniffing
from documents.previews import Busy, Glance, NotDrawn
from documents.sniffing import CSV, DOCX, EML, HTML, ODS, PDF, TIFF, TXT, XLS, XLSX, Ambiguous, Unknown
from runs.models import Artifact

# Of more, nobody makes a table; and what is stored elsewhere has to be fetched to be looked at.
MOST_BYTES = 64 << 20
TEXT_BYTES = 64 << 10
# Read whole, to know whether it is JSON.
JSON_BYTES = 256 << 10
JSON = "application/json"
# By the child: as pictures, and as rows or text.
DRAWN = (PDF, sniffing.PNG, sniffing.JPEG, TIFF)
READ = (CSV, DOCX, XLSX, XLS, ODS)
PAGES = {PDF: "Page", DOCX: "Page", **dict.fromkeys((XLSX, XLS, ODS), "Sheet")}
_TEXTS = (CSV, HTML, TXT, EML)
_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}

log = structlog.get_logger(__name__)


class NotShown(Exception):
    """Says why, for people."""


class Source(NamedTuple):
    """As `documents/previews.py` takes it."""

    sha256: str
    content_type: str
    file: str


@dataclass
class Look:
    # In words: what it is.
    what: str = ""
    why_not: str = ""
    note: str = ""
    # What its pages are called, which is shown, and how many there are.
    unit: str = "Page"
    number: int = 1
    last: int = 1
    is_drawn: bool = False
    table: Glance | None = None
    text: str = ""
    # Only its beginning is shown.
    is_cut: bool = False

    @property
    def before(self) -> int:
        return self.number - 1

    @property
    def after(self) -> int:
        """0 behind the last one."""
        return self.number + 1 if self.number < self.last else 0

    @property
    def heading(self) -> list[str]:
        return self.table.rows[0] if self.table else []

    @property
    def rows(self) -> list[list[str]]:
        return self.table.rows[1:] if self.table else []


def look_at(artifact: Artifact, number: int) -> Look:
    look = Look(number=number)
    try:
        _look(artifact, look)
    except (NotShown, NotDrawn) as error:
        look.why_not = str(error)
    except Busy:
        look.why_not = "expected a moment for it, found that other files are being looked at: reload"
    return look


def drawn(artifact: Artifact) -> Source:
    """Of what is shown as pictures. Raises NotShown."""
    with _opened(artifact) as file:
        found = _type_of(artifact, file)
    if found not in DRAWN:
        raise NotShown("expected a PDF or an image, found something else")
    return Source(artifact.sha256, found, artifact.file)


def _look(artifact: Artifact, look: Look) -> None:
    with _opened(artifact) as file:
        found = _type_of(artifact, file)
        look.what = _in_words(artifact, found)
        look.note = _mismatch(artifact, found)
        look.unit = PAGES.get(found, "Image")
        source = Source(artifact.sha256, found, artifact.file)
        if found in DRAWN:
            _draw(source, look)
        elif found not in READ or not _read(source, look):
            _show_text(artifact, file, look)


def _draw(source: Source, look: Look) -> None:
    # How many there are is the same on each.
    look.last = max(1, previews.glance(source, 1).pages)
    look.number = min(look.number, look.last)
    look.why_not = previews.why_not(source, look.number)
    look.is_drawn = not look.why_not


def _read(source: Source, look: Look) -> bool:
    """Whether there is something to be shown; a table in text can be shown as text."""
    try:
        look.last = max(1, previews.glance(source, 1).pages)
        look.number = min(look.number, look.last)
        found = previews.glance(source, look.number)
    except NotDrawn as error:
        if source.content_type != CSV:
            raise
        look.note = f"Not shown as a table: {error}"
        return False
    if found.rows:
        rows = [[pretty.plain(cell) for cell in row] for row in found.rows]
        look.table = found._replace(rows=rows, title=pretty.plain(found.title))
        look.is_cut = found.rows_total > len(rows) or found.columns_total > max(map(len, rows))
    else:
        look.text = pretty.plain(found.text)
    return True


def _show_text(artifact: Artifact, file: IO[bytes], look: Look) -> None:
    file.seek(0)
    data = file.read(JSON_BYTES + 1)
    if look.what == "JSON" and len(data) <= JSON_BYTES:
        if text := pretty.indented(_decoded(data), JSON_BYTES):
            look.text = pretty.plain(text)
            look.is_cut = len(text) > JSON_BYTES
            return
        look.note = f"Its name says JSON, and it is none, or is nested more than {pretty.DEEPEST} levels deep."
    look.text = pretty.plain(_decoded(data[:TEXT_BYTES]))
    look.is_cut = len(data) > TEXT_BYTES


def _opened(artifact: Artifact) -> IO[bytes]:
    if artifact.size_bytes > MOST_BYTES:
        most, found = filesizeformat(MOST_BYTES), filesizeformat(artifact.size_bytes)
        raise NotShown(f"expected a file of at most {most}, found one of {found}")
    try:
        return cast("IO[bytes]", default_storage.open(artifact.file))
    except FileNotFoundError as error:
        raise NotShown("expected the file in the storage, found none: tell an operator") from error
    except (OSError, ValueError) as error:
        log.error("looks.not_readable", file=artifact.file, error=str(error))
        raise NotShown("expected the file in the storage, found that it cannot be read now: try again later") from error


def _type_of(artifact: Artifact, file: IO[bytes]) -> str:
    """What is no kind of document may be text all the same: markup, programs, logs with colours."""
    try:
        return sniffing.sniff(file, artifact.name)
    except Ambiguous as error:
        raise NotShown(str(error)) from error
    except Unknown as error:
        file.seek(0)
        if _strictly_decoded(file.read(TEXT_BYTES)) is None:
            raise NotShown(str(error)) from error
    return TXT


def _in_words(artifact: Artifact, found: str) -> str:
    if found in _TEXTS and sniffing.suffix_of(artifact.name) == ".json":
        return "JSON"
    return sniffing.LABELS[found]


def _mismatch(artifact: Artifact, found: str) -> str:
    """What is text may be called anything but a picture or a document."""
    if found in _TEXTS and sniffing.SUFFIXES.get(sniffing.suffix_of(artifact.name), found) in _TEXTS:
        return ""
    problem = sniffing.problem(artifact.name, "", found)
    return f"Its name does not tell what it is: {problem}." if problem else ""


def _decoded(data: bytes) -> str:
    text = _strictly_decoded(data)
    return data.decode("latin-1") if text is None else text


def _strictly_decoded(data: bytes) -> str | None:
    """None for what is no text; it may be cut off within a character."""
    codec = next((codec for mark, codec in _MARKS.items() if data.startswith(mark)), "utf-8")
    if codec != "utf-16" and b"\0" in data:
        return None
    try:
        return codecs.getincrementaldecoder(codec)().decode(data)
    except UnicodeDecodeError:
        return None
