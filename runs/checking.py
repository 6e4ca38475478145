"""Checks a configuration for its author: its syntax, its requirements, its environment, and a run of its steps on a
file.

Nothing is stored, and this process never imports the configuration's code.
"""

import hashlib
import json
import mimetypes
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.files import File
from django.db.models import QuerySet

from builds import builder, environments, fingerprint
from builds.builder import BuildFailed, Watch
from builds.fingerprint import Snapshot
from builds.models import Build
from documents.extraction import ExtractionFailed, local
from documents.intake import BINARY
from documents.models import Document
from runs import artifacts, engines, scratch, syntax, understanding
from runs.artifacts import BadArtifact
from runs.engine_session import EngineFailed, EngineSession
from work.changes import INFO
from work.journal import LOG
from work.processes import hidden_paths, supervise
from work.processes.scratch import ScratchDirectory, workplace
from work.processes.supervise import CannotStart, Limits, Line

# The limits for reading the document of a trial run.
MOST_PAGES = 100
READ_SECONDS = 60.0
# A person waits for the page meanwhile. Parsing 1 MiB of Python takes a second and 300 MB.
PARSING = Limits(wall_seconds=10.0, cpu_seconds=10, address_space_bytes=1 << 30)
# The result of a step's attempt, by event.
_ATTEMPTS = {"STEP_SUCCEEDED": "succeeded", "STEP_RETRIED": "failed, tried again", "STEP_FAILED": "failed"}


@dataclass(frozen=True)
class Problem:
    # One of "package", "syntax", "build", "run".
    stage: str
    message: str
    path: str | None = None
    line: int | None = None


@dataclass
class Trial:
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
    run: Trial | None = None

    def hear(self, lines: list[Line]) -> None:
        self.log.extend(line.text for line in lines)

    def as_data(self) -> dict[str, Any]:
        return {"ok": not self.problems, **asdict(self)}

    def add(self, stage: str, message: str) -> None:
        self.problems.append(Problem(stage, message))


def check(
    snapshot: Snapshot, document: Path | None, output: Path | None, say: Callable[[list[Line]], None] | None = None
) -> Report:
    """Check a configuration, and run it on the document if one is given.

    `say` receives each line of output at once; without it, the lines go to the report's log. Raises OSError if the file
    cannot be read or the output cannot be written.
    """
    report = Report(fingerprint.of_build(fingerprint.of_contents(snapshot)), list(problems_of_syntax(snapshot)))
    seconds = settings.ADE_BUILD_TIMEOUT
    watch = Watch(
        until=time.monotonic() + seconds,
        time=f"the time limit of a build, {seconds} s (ADE_BUILD_TIMEOUT)",
        say=say or report.hear,
    )
    try:
        if report.problems:
            # Make no environment, which would only report the syntax errors again, but still check the requirements.
            with environments.staging(report.fingerprint) as staged:
                report.lock = builder.resolve(snapshot, staged.work, watch)
        else:
            with _environment(snapshot, watch, report) as environment:
                if document is not None:
                    _run(environment, document, output, report)
    except (BuildFailed, CannotStart) as error:
        report.add("build", str(error))
    return report


def glance(snapshot: Snapshot) -> Report:
    """Run only the quick checks: the syntax, and whether a build already has the environment. Raises CannotStart."""
    report = Report(fingerprint.of_build(fingerprint.of_contents(snapshot)), _problems_by_child(snapshot))
    if build := _ready_builds(report.fingerprint).only("lock").first():
        report.environment, report.lock = "ready", build.lock
    return report


def problems_of_syntax(snapshot: Snapshot) -> Iterator[Problem]:
    """Check the syntax if the configuration uses ADE's own version of Python. For another version, the syntax is
    checked when the environment is made.
    """
    if _is_of_our_python(snapshot):
        for path, message, line in syntax.problems(snapshot["files"]):
            yield Problem("syntax", message, path, line)


def _problems_by_child(snapshot: Snapshot) -> list[Problem]:
    """Like `problems_of_syntax`, but in a child process, because the parser may crash."""
    if not _is_of_our_python(snapshot):
        return []
    output: list[str] = []
    with closing(ScratchDirectory(scratch.root())) as folder, workplace(folder.path, "syntax") as directory:
        (directory / "files.json").write_text(json.dumps(snapshot["files"]), "utf-8")
        end = supervise.run(
            [sys.executable, "-I", syntax.__file__, "files.json"],
            cwd=directory,
            limits=PARSING,
            on_output=lambda lines: output.extend(line.text for line in lines),
            readable=[Path(syntax.__file__)],
            hidden=hidden_paths.places(),
        )
    if end.returncode != 0:
        return [Problem("syntax", f"The files could not be parsed: Python {end}.")]
    return [Problem("syntax", message, path, line) for path, message, line in map(json.loads, output)]


def _is_of_our_python(snapshot: Snapshot) -> bool:
    return snapshot["python_version"] in ("", fingerprint.PYTHON_VERSION)


def _ready_builds(fingerprint: str) -> "QuerySet[Build]":
    return Build.objects.filter(fingerprint=fingerprint, status=Build.Status.READY).order_by("-id")


@contextmanager
def _environment(snapshot: Snapshot, watch: Watch, report: Report) -> Iterator[Path]:
    for lock in _ready_builds(report.fingerprint).values_list("lock", flat=True):
        name = environments.name_of(report.fingerprint, lock)
        with environments.in_use(name) as path:
            if environments.is_usable(name):
                report.environment, report.lock = "ready", lock
                yield path
                return
    with builder.temporary_environment(snapshot, watch) as (path, environment):
        report.environment, report.lock = "made", environment.lock
        yield path


def _run(environment: Path, path: Path, output: Path | None, report: Report) -> None:
    report.run = trial = Trial()
    seconds = settings.ADE_RUN_TIMEOUT_SECONDS
    recorder = _Recorder(trial)
    session = EngineSession(recorder)
    try:
        with closing(ScratchDirectory(scratch.root())) as folder, workplace(folder.path, "check") as directory:
            lay_out(directory, path, folder.place())
            limits = engines.limits(seconds)
            with engines.start_cold(environment, directory, limits, recorder.lines, session.hear) as child:
                end = child.wait()
            trial.seconds = round(end.seconds, 3)
            trial.fields = session.fields
            session.judge(end, seconds)
            trial.artifacts = artifacts.look(directory, output)
    except (EngineFailed, BadArtifact) as error:
        report.add("run", str(error))


def lay_out(directory: Path, path: Path, reading: Path) -> None:
    """Write the engine's input for a file that is not stored: read it in `reading` as processing would."""
    content_type = mimetypes.guess_type(path.name)[0] or BINARY
    extracted, digest = _extract(path, content_type, reading)
    understood = understanding.write_digest(directory, digest) if digest else None
    type = (digest.get("type") if digest else None) or {"name": "", "confidence": None}
    with path.open("rb") as file:
        document = Document(
            name=path.name,
            file=File(file, path.name),
            content_type=content_type,
            size_bytes=path.stat().st_size,
            sha256=hashlib.file_digest(file, "sha256").hexdigest(),
            type=type["name"],
            type_confidence=type["confidence"],
            **extracted,
        )
        scratch.lay_out(directory, document, understood=understood)


def _extract(path: Path, content_type: str, reading: Path) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return the columns that processing the document would have set, and what the reader has understood."""
    try:
        extraction = local.extract(path, content_type, 1, MOST_PAGES, reading, wall_seconds=READ_SECONDS)
        digest = local.digest(path, content_type, [extraction.path], reading, wall_seconds=READ_SECONDS)
    except ExtractionFailed:
        return {"status": Document.Status.FAILED}, None
    columns = {"status": Document.Status.PROCESSED, "pages": extraction.pages_total, "text": digest["text"]}
    return columns, digest


class _Recorder:
    """Stands in for a journal, and collects the events in the report."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial

    def tell(self, kind: str, message: str = "", data: Mapping[str, Any] | None = None, level: int = INFO) -> None:
        data = dict(data or {})
        if kind == LOG:
            line = {"stream": data.get("stream"), "step": data.get("step"), "level": level, "message": message}
            self._trial.log.append(line)
        elif result := _ATTEMPTS.get(kind):
            self._trial.steps.append({name: data[name] for name in ("step", "attempt", "seconds")} | {"result": result})

    def look(self) -> None:
        """Do nothing: no events wait to be written."""

    def lines(self, lines: list[Line]) -> None:
        for line in lines:
            self.tell(LOG, line.text, {"stream": line.stream})
