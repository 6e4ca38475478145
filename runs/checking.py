"""Tries a configuration for its author: its syntax, requirements, environment, and its steps over a file.

Nothing is stored, and none of its code is ever imported in this process.
"""

import hashlib
import json
import mimetypes
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.files import File

from builds import builder, environments, fingerprint
from builds.builder import BuildFailed, Watch
from builds.fingerprint import Snapshot
from builds.models import Build
from documents.extraction import ExtractionFailed, local
from documents.intake import BINARY
from documents.models import Document
from runs import artifacts, engines, scratch, syntax
from runs.artifacts import NotKept
from runs.engine_session import EngineFailed, EngineSession
from work.changes import INFO
from work.journal import LOG
from work.processes import hidden_paths, supervise
from work.processes.scratch import ScratchDirectory, workplace
from work.processes.supervise import CannotStart, Ended, Limits, Line

# The limits for reading the document of a trial run.
MOST_PAGES = 100
READ_SECONDS = 60.0
# The patience of a person who waits for a page. Parsing a MiB of Python takes a second and 300 MB.
PARSING = Limits(wall_seconds=10.0, cpu_seconds=10, address_space_bytes=1 << 30)
# Events of a run -> result of the attempt.
_ATTEMPTS = {"STEP_SUCCEEDED": "succeeded", "STEP_RETRIED": "failed, tried again", "STEP_FAILED": "failed"}


@dataclass(frozen=True)
class Problem:
    # One of "package", "syntax", "build", "run".
    stage: str
    message: str
    path: str | None = None
    line: int | None = None


@dataclass
class Ran:
    seconds: float = 0.0
    steps: list[dict[str, Any]] = field(default_factory=list)
    fields: list[dict[str, Any]] = field(default_factory=list)
    artifacts: list[dict[str, Any]] = field(default_factory=list)
    log: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Report:
    fingerprint: str
    problems: list[Problem] = field(default_factory=list)
    # "ready" if a build's environment was used, "made" if one was made for this check.
    environment: str | None = None
    lock: str | None = None
    # The output of making the environment.
    log: list[str] = field(default_factory=list)
    run: Ran | None = None

    def hear(self, lines: list[Line]) -> None:
        self.log.extend(line.text for line in lines)

    def as_data(self) -> dict[str, Any]:
        return {"ok": not self.problems, **asdict(self)}

    def add(self, stage: str, message: str) -> None:
        self.problems.append(Problem(stage, message))


def check(
    snapshot: Snapshot, document: Path | None, output: Path | None, say: Callable[[list[Line]], None] | None = None
) -> Report:
    """Check a configuration, and run it over the document if one is given.

    `say` receives at once the lines that would otherwise go to the report's log. Raises OSError if the file cannot be
    read or the output cannot be written.
    """
    report = Report(fingerprint.of_build(fingerprint.of_contents(snapshot)), list(problems_of_syntax(snapshot)))
    watch = _watch(say or report.hear)
    try:
        if report.problems:
            # Making an environment would only report the syntax errors again. The requirements are checked all the
            # same.
            _resolve(snapshot, watch, report)
        else:
            with _environment(snapshot, watch, report) as environment:
                _run(environment, document, output, report)
    except (BuildFailed, CannotStart) as error:
        report.add("build", str(error))
    return report


def glance(snapshot: Snapshot) -> Report:
    """Check what takes only a moment: the syntax, and whether a build has the environment. Raises CannotStart."""
    report = Report(fingerprint.of_build(fingerprint.of_contents(snapshot)), _parsed_apart(snapshot))
    ready = Build.objects.filter(fingerprint=report.fingerprint, status="ready").order_by("-id")
    if build := ready.only("lock").first():
        report.environment, report.lock = "ready", build.lock
    return report


def problems_of_syntax(snapshot: Snapshot) -> Iterator[Problem]:
    """Check the syntax if the configuration uses ADE's own Python. Another Python checks when the
    environment is made.
    """
    if not _is_of_our_python(snapshot):
        return
    yield from _told(syntax.problems(snapshot["files"]))


def _is_of_our_python(snapshot: Snapshot) -> bool:
    return snapshot["python_version"] in ("", fingerprint.PYTHON_VERSION)


def _told(found: Iterable[syntax.Found]) -> Iterator[Problem]:
    for path, message, line in found:
        yield Problem("syntax", message, path, line)


def _parsed_apart(snapshot: Snapshot) -> list[Problem]:
    """Like `problems_of_syntax`, but in a child process, because parsing may crash it."""
    if not _is_of_our_python(snapshot):
        return []
    said: list[str] = []
    desk = ScratchDirectory(scratch.root())
    try:
        with workplace(desk.path, "syntax") as directory:
            (directory / "files.json").write_text(json.dumps(snapshot["files"]), "utf-8")
            ended = supervise.run(
                [sys.executable, "-I", syntax.__file__, "files.json"],
                cwd=directory,
                limits=PARSING,
                on_output=lambda lines: said.extend(line.text for line in lines),
                readable=[Path(syntax.__file__)],
                hidden=hidden_paths.places(),
            )
    finally:
        desk.close()
    if ended.returncode != 0:
        return [Problem("syntax", f"The files could not be parsed: Python {ended}.")]
    return list(_told(json.loads(line) for line in said))


def _resolve(snapshot: Snapshot, watch: Watch, report: Report) -> None:
    with environments.staging(report.fingerprint) as staged:
        report.lock = builder.resolve(snapshot, staged.work, watch)


@contextmanager
def _environment(snapshot: Snapshot, watch: Watch, report: Report) -> Iterator[Path]:
    ready = Build.objects.filter(fingerprint=report.fingerprint, status="ready")
    for lock in ready.order_by("-id").values_list("lock", flat=True):
        name = environments.name_of(report.fingerprint, lock)
        with environments.in_use(name) as path:
            if environments.is_usable(name):
                report.environment, report.lock = "ready", lock
                yield path
                return
    with builder.made_for_once(snapshot, watch) as (path, made):
        report.environment, report.lock = "made", made.lock
        yield path


def _watch(say: Callable[[list[Line]], None]) -> Watch:
    seconds = settings.ADE_BUILD_TIMEOUT
    until = time.monotonic() + seconds
    return Watch(until=until, time=f"the time limit of a build, {seconds} s (ADE_BUILD_TIMEOUT)", say=say)


def _run(environment: Path, document: Path | None, output: Path | None, report: Report) -> None:
    if document is None:
        return
    report.run = Ran()
    desk = ScratchDirectory(scratch.root())
    try:
        with workplace(desk.path, "check") as directory:
            _lay_out(directory, document, desk.place())
            _execute(environment, directory, report.run)
            report.run.artifacts = artifacts.look(directory, output)
    except (EngineFailed, NotKept) as error:
        report.add("run", str(error))
    finally:
        desk.close()


def _lay_out(directory: Path, path: Path, reading: Path) -> None:
    content_type = mimetypes.guess_type(path.name)[0] or BINARY
    with path.open("rb") as file:
        document = Document(
            name=path.name,
            file=File(file, path.name),
            content_type=content_type,
            size_bytes=path.stat().st_size,
            sha256=hashlib.file_digest(file, "sha256").hexdigest(),
            **_extracted(path, content_type, reading),
        )
        scratch.lay_out(directory, document)


def _extracted(path: Path, content_type: str, reading: Path) -> dict[str, Any]:
    """Extract the text, as for a processed document."""
    try:
        found = local.extract(path, content_type, 1, MOST_PAGES, reading, wall_seconds=READ_SECONDS)
    except ExtractionFailed:
        return {"status": "failed"}
    pages = json.loads(found.path.read_bytes())["pages"]
    return {"status": "processed", "pages": found.pages_total, "text": "\n\n".join(page["text"] for page in pages)}


def _execute(environment: Path, directory: Path, ran: Ran) -> None:
    seconds = settings.ADE_RUN_TIMEOUT_SECONDS
    record = _Record(ran)
    session = EngineSession(record)
    with engines.start_cold(environment, directory, engines.limits(seconds), record.lines, session.hear) as child:
        ended: Ended = child.wait()
    ran.seconds = round(ended.seconds, 3)
    ran.fields = session.fields
    session.judge(ended, seconds)


class _Record:
    """Takes the place of a journal, and collects the events in the report."""

    def __init__(self, ran: Ran) -> None:
        self._ran = ran

    def tell(self, kind: str, message: str = "", data: Mapping[str, Any] | None = None, level: int = INFO) -> None:
        told = dict(data or {})
        if kind == LOG:
            line = {"stream": told.get("stream"), "step": told.get("step"), "level": level, "message": message}
            self._ran.log.append(line)
        elif result := _ATTEMPTS.get(kind):
            self._ran.steps.append({name: told[name] for name in ("step", "attempt", "seconds")} | {"result": result})

    def look(self) -> None:
        """Do nothing: no events wait to be written."""

    def lines(self, lines: list[Line]) -> None:
        for line in lines:
            self.tell(LOG, line.text, {"stream": line.stream})
