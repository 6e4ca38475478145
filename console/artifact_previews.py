"""Previews of files that a run produced. The configuration's code is untrusted, so a file's type is detected from its
content, not from its name. A sandboxed child process renders images and tables; other files are shown as text or not at
all.
"""

import codecs
from dataclasses import dataclass
from typing import IO, NamedTuple, cast

import structlog
from django.core.files.storage import default_storage
from django.template.defaultfilters import filesizeformat

from console import formatting, pretty
from documents import previews, sniffing
from documents.previews import Busy, Excerpt, PreviewFailed
from documents.sniffing import CSV, DOCX, EML, HTML, ODS, PDF, TIFF, TXT, XLS, XLSX, Ambiguous, Unknown
from runs.models import Artifact

# Larger files have no preview: a table of that size is not useful, and a file in remote storage must be downloaded
# first.
MOST_BYTES = 64 << 20
TEXT_BYTES = 64 << 10
# JSON has its own limit, because it must be read completely before it can be indented.
JSON_BYTES = 256 << 10
JSON = "application/json"
# Types that the child process renders as images, and types that it reads as rows or text.
DRAWN = (PDF, sniffing.PNG, sniffing.JPEG, TIFF)
READ = (CSV, DOCX, XLSX, XLS, ODS)
PAGES = {PDF: "Page", DOCX: "Page", **dict.fromkeys((XLSX, XLS, ODS), "Sheet")}
_TEXTS = (CSV, HTML, TXT, EML)
_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}

log = structlog.get_logger(__name__)


class NotShown(Exception):
    """There is no preview. The message, shown to the user, explains why."""


class Source(NamedTuple):
    """The attributes of a file that `documents/previews.py` needs."""

    sha256: str
    content_type: str
    file: str


@dataclass
class Look:
    # The file type, in words.
    what: str = ""
    why_not: str = ""
    note: str = ""
    # The name of a part (page or sheet), the number of the part shown, and the number of parts.
    unit: str = "Page"
    number: int = 1
    last: int = 1
    is_image: bool = False
    table: Excerpt | None = None
    text: str = ""
    # Whether only the beginning is shown.
    is_cut: bool = False

    @property
    def before(self) -> int:
        return self.number - 1

    @property
    def after(self) -> int:
        """Return the number of the next part, or 0 after the last one."""
        return self.number + 1 if self.number < self.last else 0

    @property
    def heading(self) -> list[str]:
        return self.table.rows[0] if self.table else []

    @property
    def rows(self) -> list[list[str]]:
        return self.table.rows[1:] if self.table else []


def preview_of(artifact: Artifact, number: int) -> Look:
    look = Look(number=number)
    try:
        with _open(artifact) as file:
            _look_at(artifact, file, look)
    except (NotShown, PreviewFailed) as error:
        look.why_not = formatting.sentence(str(error))
    except Busy:
        look.why_not = "Other files are being previewed. Reload in a moment."
    return look


def image_source(artifact: Artifact) -> Source:
    """Return the source of a file whose pages can be shown as images. Raises NotShown for any other file."""
    with _open(artifact) as file:
        content_type = _type_of(artifact, file)
    if content_type not in DRAWN:
        raise NotShown("This file is neither a PDF nor an image.")
    return Source(artifact.sha256, content_type, artifact.file)


def _look_at(artifact: Artifact, file: IO[bytes], look: Look) -> None:
    content_type = _type_of(artifact, file)
    suffix, is_text = sniffing.suffix_of(artifact.name), content_type in _TEXTS
    look.what = "JSON" if is_text and suffix == ".json" else sniffing.LABELS[content_type]
    # A text file may have any suffix, unless it is the suffix of an image or a document.
    if not is_text or sniffing.SUFFIXES.get(suffix, content_type) not in _TEXTS:
        problem = sniffing.problem(artifact.name, "", content_type)
        look.note = formatting.after("The name does not match the content", problem) if problem else ""
    look.unit = PAGES.get(content_type, "Image")
    source = Source(artifact.sha256, content_type, artifact.file)
    if content_type in DRAWN:
        # The result for the first page includes the number of pages.
        look.last = max(1, previews.excerpt(source, 1).pages)
        look.number = min(look.number, look.last)
        reason = previews.failure_reason(source, look.number)
        look.is_image = not reason
        look.why_not = formatting.sentence(reason) if reason else ""
    elif content_type not in READ or not _read(source, look):
        _show_text(file, look)


def _read(source: Source, look: Look) -> bool:
    """Load a table or text into `look`. Return False if there is none; a CSV file can then still be shown as plain
    text.
    """
    try:
        look.last = max(1, previews.excerpt(source, 1).pages)
        look.number = min(look.number, look.last)
        glance = previews.excerpt(source, look.number)
    except PreviewFailed as error:
        if source.content_type != CSV:
            raise
        look.note = formatting.after("Not shown as a table", str(error))
        return False
    if glance.rows:
        rows = [[pretty.plain(cell) for cell in row] for row in glance.rows]
        look.table = glance._replace(rows=rows, title=pretty.plain(glance.title))
        look.is_cut = glance.rows_total > len(rows) or glance.columns_total > max(map(len, rows))
    else:
        look.text = pretty.plain(glance.text)
    return True


def _show_text(file: IO[bytes], look: Look) -> None:
    file.seek(0)
    data = file.read(JSON_BYTES + 1)
    if look.what == "JSON" and len(data) <= JSON_BYTES:
        if text := pretty.indented(_text_of(data), JSON_BYTES):
            look.text = pretty.plain(text)
            look.is_cut = len(text) > JSON_BYTES
            return
        look.note = (
            f"The name says JSON, but the content is not JSON or is nested more than {pretty.DEEPEST} levels deep."
        )
    look.text = pretty.plain(_text_of(data[:TEXT_BYTES]))
    look.is_cut = len(data) > TEXT_BYTES


def _open(artifact: Artifact) -> IO[bytes]:
    if artifact.size_bytes > MOST_BYTES:
        most, size = filesizeformat(MOST_BYTES), filesizeformat(artifact.size_bytes)
        raise NotShown(f"This file is {size}. Files of up to {most} can be previewed.")
    try:
        return cast("IO[bytes]", default_storage.open(artifact.file))
    except FileNotFoundError as error:
        raise NotShown("This file is missing from the storage. Report this to an operator.") from error
    except (OSError, ValueError) as error:
        log.error("looks.not_readable", file=artifact.file, error=str(error))
        raise NotShown("This file cannot be read from the storage now. Try again later.") from error


def _type_of(artifact: Artifact, file: IO[bytes]) -> str:
    """Detect the file type. If the type is unknown but the content can be decoded, the file counts as text, such as
    markup, source code, or a log with colours.
    """
    try:
        return sniffing.sniff(file, artifact.name)
    except Ambiguous as error:
        raise NotShown(str(error)) from error
    except Unknown as error:
        file.seek(0)
        if _decode(file.read(TEXT_BYTES)) is None:
            raise NotShown(str(error)) from error
    return TXT


def _text_of(data: bytes) -> str:
    text = _decode(data)
    return data.decode("latin-1") if text is None else text


def _decode(data: bytes) -> str | None:
    """Return the text, or None if the data is not text. The data may end in the middle of a character."""
    codec = next((codec for mark, codec in _MARKS.items() if data.startswith(mark)), "utf-8")
    if codec != "utf-16" and b"\0" in data:
        return None
    try:
        return codecs.getincrementaldecoder(codec)().decode(data)
    except UnicodeDecodeError:
        return None
