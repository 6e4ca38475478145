"""The context that each step receives: the document, and methods for reporting results."""

from __future__ import annotations

import json
import math
import re
import time

from ade_engine.steps import Rejected

# Every cold run waits for the imports of this module, so keep them few.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from ade_engine.channel import Channel
    from ade_engine.understood import Field, Table, Type, Word

LEVELS = ("debug", "info", "warning", "error")
# More frequent updates would help no reader, and each update is stored as a row.
PROGRESS_SECONDS = 0.2
LONGEST_NAME = 100
# Each log line is stored as a row. These limits allow ten times more than a person would read. The worker has the same
# limits; sending lines that it would drop would only take space from results.
LONGEST_LINE = 8192
MOST_LOG = 1 << 20
LOG_CUT = f"[log longer than {MOST_LOG:,} characters: the rest is left out]"
ARTIFACTS = "artifacts"
# Pattern for each part of an artifact's name. It excludes characters that a shell, browser or file system interprets.
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_. -]*")
# A spreadsheet treats text that starts with one of these as a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\uff1d")
# An amount such as -5.00 only looks like a formula, so it stays unchanged.
_AMOUNT = re.compile(r"[+-][0-9][0-9., ]*%?")


class Document:
    """The document of the run."""

    def __init__(self, directory: Path, data: Mapping[str, Any]) -> None:
        self.id: int | None = data.get("id")
        self.name: str = data["name"]
        self.content_type: str = data["content_type"]
        self.size_bytes: int = data["size_bytes"]
        self.sha256: str = data["sha256"]
        self.pages: int | None = data.get("pages")
        # The state of text extraction: processing, processed or failed.
        self.status: str = data.get("status", "")
        # The path of the stored file, or None if there is none.
        self.path: Path | None = directory / data["file"] if data.get("file") else None
        self._text: Path | None = directory / data["text"] if data.get("text") else None
        self._fields_file: Path | None = directory / data["fields"] if data.get("fields") else None
        self._tables_file: Path | None = directory / data["tables"] if data.get("tables") else None
        self._words_file: Path | None = directory / data["words"] if data.get("words") else None
        self._type: Mapping[str, Any] | None = data.get("type")
        self._fields: dict[str, Field] | None = None
        self._tables: dict[str, Table] | None = None
        self._words: dict[int, list[Word]] | None = None

    def read(self) -> bytes:
        """Return the content of the file. Raise FileNotFoundError if there is none."""
        if self.path is None:
            raise FileNotFoundError(f"Document {self.name!r} has no stored file.")
        return self.path.read_bytes()

    @property
    def text(self) -> str:
        """The extracted text. Without one, the content if the document is a text file, and otherwise "".

        Raises Rejected while the text is still being extracted, because the document would look empty.
        """
        if self._text is not None:
            return self._text.read_text("utf-8")
        if self.path is None or not self.content_type.startswith("text/"):
            if self.path is not None and self.status == "processing":
                raise Rejected(
                    f"The text of {self.name!r} is still being extracted. Run again when the document is processed."
                )
            return ""
        return self.path.read_text("utf-8-sig", errors="replace")

    @property
    def type(self) -> Type | None:
        """The type of the document, or None if it is not known."""
        from ade_engine.understood import Type  # noqa: PLC0415  # not needed by every run

        return Type(self._type) if self._type else None

    @property
    def fields(self) -> dict[str, Field]:
        """The fields that ADE, a run or a person has found, by name."""
        if self._fields is None:
            from ade_engine.understood import fields_in  # noqa: PLC0415  # not needed by every run

            self._fields = fields_in(self._fields_file) if self._fields_file else {}
        return self._fields

    @property
    def tables(self) -> dict[str, Table]:
        """The tables that ADE has found, by name."""
        if self._tables is None:
            from ade_engine.understood import tables_in  # noqa: PLC0415  # not needed by every run

            self._tables = tables_in(self._tables_file) if self._tables_file else {}
        return self._tables

    @property
    def words(self) -> dict[int, list[Word]]:
        """The words of each page with their places, by the number of the page. Pages without a size have none."""
        if self._words is None:
            from ade_engine.understood import words_in  # noqa: PLC0415  # not needed by every run

            self._words = words_in(self._words_file) if self._words_file else {}
        return self._words


class Context:
    """The context of a run, shared by all its steps. Results of a failed attempt are dropped before the next one."""

    def __init__(self, directory: Path, data: Mapping[str, Any], channel: Channel) -> None:
        self.run_id: int | None = data.get("run")
        self.document = Document(directory, data["document"])
        # Data that steps pass to later steps.
        self.data: dict[str, Any] = {}
        # The current step and its attempt.
        self.step = ""
        self.attempt = 0
        self._channel = channel
        self._artifacts = directory / ARTIFACTS
        self._fields: list[dict[str, Any]] = []
        self._kept_artifacts: set[str] = set()
        self._new_artifacts: set[str] = set()
        self._data_before: dict[str, Any] = {}
        self._progress_at = 0.0
        self._log_room, self._is_log_cut = MOST_LOG, False

    def log(self, message: object, level: str = "info") -> None:
        if level not in LEVELS:
            raise ValueError(f"Unknown log level {level!r}. Known levels: {', '.join(LEVELS)}.")
        text = str(message)
        text = text if len(text) <= LONGEST_LINE else f"{text[: LONGEST_LINE - 1]}…"
        self._log_room -= len(text)
        if self._log_room >= 0:
            self._channel.send("log", step=self.step, level=level, message=text)
        elif not self._is_log_cut:
            self._is_log_cut = True
            self._channel.send("log", step=self.step, level="warning", message=LOG_CUT)

    def progress(self, done: float, total: float | None = None) -> None:
        """Report the progress of the step: `progress(3, 10)`.

        Reports are sent a few times a second at most; the last one (`done == total`) is always sent.
        """
        now = time.monotonic()
        if now - self._progress_at >= PROGRESS_SECONDS or done == total:
            self._progress_at = now
            self._channel.send("progress", step=self.step, done=_number(done), total=_number(total))

    def field(
        self,
        name: str,
        value: Any,
        confidence: float | None = None,
        page: int | None = None,
        box: Sequence[float] | None = None,
    ) -> None:
        """Report a field: its value, and optionally its confidence from 0 to 1 and its place.

        Pages count from 1. A box is left, top, right and bottom, as fractions of the page measured from the page's top
        left corner.
        """
        if not isinstance(name, str) or not 1 <= len(name) <= LONGEST_NAME:
            raise ValueError(f"A field name must be a text of 1 to {LONGEST_NAME} characters, not {name!r}.")
        try:
            # Convert the value as JSON would store it. Types that JSON lacks, such as dates, become text.
            value = json.loads(json.dumps(value, default=str, allow_nan=False))
        except (ValueError, TypeError, RecursionError) as error:
            raise ValueError(f"The value of {name!r} cannot be written as JSON: {value!r} ({error}).") from error
        if confidence is not None:
            if not 0 <= float(confidence) <= 1:
                raise ValueError(f"The confidence of {name!r} must be between 0 and 1, not {confidence!r}.")
            confidence = float(confidence)
        if page is not None and (not isinstance(page, int) or not 1 <= page < 2**31):
            raise ValueError(f"The page of {name!r} must be a whole number from 1, not {page!r}.")
        place = None
        if box is not None:
            place = [float(each) for each in box]
            if (
                len(place) != 4
                or not all(0 <= each <= 1 for each in place)
                or place[0] > place[2]
                or place[1] > place[3]
            ):
                message = "must be left, top, right, bottom as fractions of the page from 0 to 1"
                raise ValueError(f"The box of {name!r} {message}, not {box!r}.")
            place = [round(each, 5) for each in place]
        field = {"name": name, "value": value, "confidence": confidence, "page": page, "box": place, "step": self.step}
        self._fields.append(field)

    def artifact(self, name: str, content: str | bytes | None = None) -> Path:
        """Return the path for the artifact with this name. If `content` is given, write it to that path."""
        if len(name) > LONGEST_NAME or not all(_PART.fullmatch(part) for part in name.split("/")):
            raise ValueError(
                f"Invalid artifact name {name!r}. Use at most {LONGEST_NAME} letters, digits, underscores, dots,"
                " dashes, spaces and slashes. Each part must begin with a letter, a digit or an underscore."
            )
        path = self._artifacts / name
        self._new_artifacts.add(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is not None:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def table(self, name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Path:
        """Write the rows as the artifact NAME.csv.

        Text that a spreadsheet would read as a formula gets a leading apostrophe.
        """
        import csv  # noqa: PLC0415  # not needed by every run

        path = self.artifact(f"{name}.csv")
        count = 0
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([_cell(each) for each in columns])
            for count, row in enumerate(rows, 1):  # used after the loop
                if len(row) != len(columns):
                    raise ValueError(f"Row {count} of {name} must have {len(columns)} values, not {len(row)}.")
                writer.writerow([_cell(each) for each in row])
        self.log(f"table {name}: {count} rows, {len(columns)} columns")
        return path

    def begin(self, step: str, attempt: int) -> None:
        """Start an attempt of a step. The engine calls this."""
        self.step, self.attempt = step, attempt
        self._data_before = dict(self.data)
        self._fields, self._new_artifacts = [], set()

    def keep(self) -> None:
        """Keep the results of a successful attempt. The engine calls this."""
        for field in self._fields:
            self._channel.send("field", soon=True, **field)
        self._kept_artifacts |= self._new_artifacts

    def drop(self) -> None:
        """Drop the results of a failed attempt. The engine calls this."""
        self.data.clear()
        self.data.update(self._data_before)
        import shutil  # noqa: PLC0415  # not needed by every run

        for name in self._new_artifacts - self._kept_artifacts:
            path = self._artifacts / name
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)


def _number(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value


def _cell(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(_FORMULA) and not _AMOUNT.fullmatch(value):
        return f"'{value}"
    return value
