"""Handles runs: executes a claimed run and records how it ended."""

import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import structlog
from django.conf import settings
from django.db import Error, InterfaceError, OperationalError, connection
from django.db.models import Exists, OuterRef, QuerySet

from builds import builder, environments
from builds.builder import BuildFailed, Watch
from builds.models import Build
from documents.models import Document, DocumentField, DocumentTable, FieldCorrection
from runs import artifacts, engines, lifecycle, publishing, scratch, understanding
from runs.artifacts import BadArtifact
from runs.engine_session import EngineFailed, EngineSession, Failure, Results
from runs.scratch import NoDocument
from runs.understanding import Parts
from work import failpoints
from work.changes import WARNING
from work.claims import Claim, Interrupted, ResultRefused
from work.journal import Journal
from work.processes.scratch import remove, workplace
from work.processes.supervise import CannotStart
from work.processes.warm import Warm
from work.sql import compiled

T = TypeVar("T")

# The pause between attempts to read from the database.
PAUSE_SECONDS = 0.5
# Environment names by build id. A ready build never changes, so its name is read once.
_environments: dict[int, str] = {}
# Failures that are not defects of ADE.
EXPECTED = (EngineFailed, BadArtifact, NoDocument, BuildFailed, CannotStart)
# The document's columns that the engine gets, and its workspace. `Document.from_db` needs them in the model's order.
COLUMNS = (
    *("id", "workspace_id", "name", "file", "content_type", "size_bytes", "sha256"),
    *("status", "pages", "text", "type", "type_confidence", "purged_at"),
)

log = structlog.get_logger(__name__)


def do(claim: Claim) -> Results:
    started = time.monotonic()
    journal = Journal(claim)
    try:
        document, parts, name = _retried(claim, lambda: _read(claim))
        with environments.in_use(name) as environment:
            if reason := environments.why_unusable(name):
                _materialize(claim, journal, started, reason)
            return _Execution(claim, journal, document, parts, name, environment, started).run()
    except Interrupted:
        # Write the pending events now: recovery will end the run, and does not have them.
        with suppress(Error):
            journal.write()
        raise


def succeed(claim: Claim, results: Results) -> bool:
    findings = publishing.findings(results.fields) if claim.values["publishes"] else None
    data = results.data | ({"published": len(findings)} if findings is not None else {})
    succeeded = lifecycle.succeed(
        claim, data=data, fields=results.fields, artifacts=results.artifacts, findings=findings
    )
    if not succeeded:
        artifacts.discard(results.artifacts)
    return succeeded


def fail(claim: Claim, error: BaseException) -> bool:
    if isinstance(error, EngineFailed):
        return lifecycle.fail(claim, error.failure_type, str(error))
    if isinstance(error, BadArtifact):
        kind = Failure.LIMIT_EXCEEDED if error.over_limit else Failure.ENGINE_FAILED
        return lifecycle.fail(claim, kind, str(error))
    if isinstance(error, BuildFailed):
        kind = Failure.TIMED_OUT if error.failure_type == "TIMED_OUT" else Failure.BUILD_FAILED
        return lifecycle.fail(claim, kind, f"Build failed on this host: {error}")
    if isinstance(error, CannotStart | NoDocument | ResultRefused):
        return lifecycle.fail(claim, Failure.ENGINE_FAILED, str(error))
    return lifecycle.fail(claim, Failure.ENGINE_FAILED, f"Internal error: {error!r}")


class _Execution:
    """The execution of one run, from its working directory to its results."""

    def __init__(
        self,
        claim: Claim,
        journal: Journal,
        document: Document,
        parts: Parts,
        name: str,
        environment: Path,
        started: float,
    ) -> None:
        self.claim, self.journal, self.document, self.parts = claim, journal, document, parts
        self.name, self.environment = name, environment
        # Everything counts towards the run's timeout: making its environment and its directory, and importing the
        # configuration.
        self.until = started + settings.ADE_RUN_TIMEOUT_SECONDS
        self.session = EngineSession(journal)

    def run(self) -> Results:
        if warm := engines.take(self.claim, self.name, self.document.workspace_id, self.until):
            try:
                return self._run_in(warm.folder, warm, partial(engines.POOL.give_back, warm))
            except CannotStart as error:
                # The warm engine was given back, which ends it and everything that it forked. A cold start needs
                # nothing from it.
                log.warning("engine.not_forked", claim=str(self.claim), error=str(error))
        folder = engines.POOL.desk().place()
        return self._run_in(folder, None, partial(remove, folder))

    def _run_in(self, folder: Path, warm: Warm | None, leave: Callable[[], object]) -> Results:
        name = f"{self.claim.id}-{self.claim.holder.token}"
        with ExitStack() as cleanup:
            cleanup.callback(leave)
            directory = cleanup.enter_context(workplace(folder, name))
            understood = _retried(self.claim, lambda: understanding.write(directory, self.document.pk, self.parts))
            scratch.lay_out(directory, self.document, self.claim.id, understood)
            try:
                return self._execute(directory, warm)
            except EngineFailed as error:
                if error.failure_type == Failure.LIMIT_EXCEEDED:
                    # Deleting what such a run has written may take many seconds, so the run ends first.
                    self.claim.afterwards.callback(cleanup.pop_all().close)
                raise

    def _execute(self, directory: Path, warm: Warm | None) -> Results:
        failpoints.hit("engine.before_spawn")
        limits = engines.limits(max(self.until - time.monotonic(), 0.1))
        wiring = (limits, self.journal.lines, self.session.hear, self.claim.trusted_until)
        try:
            if warm is not None:
                child = engines.start_warm(warm, directory, *wiring)
            else:
                child = engines.start_cold(self.environment, directory, *wiring)
        except CannotStart:
            # If the start failed because the claim is no longer trusted, raise Interrupted instead.
            self.claim.go_on()
            raise
        with child:
            self.journal.keep(child)
            failpoints.hit("engine.spawned")
            end = child.wait(self.journal.why_stop)
        failpoints.hit("engine.exited")
        if end.left_behind:
            # The run can end nevertheless: these processes never return to user code, and no other run uses their
            # directory or their engine.
            pids = list(end.left_behind)
            message = "Processes that could not be killed are stuck in the kernel of this machine: "
            self.journal.tell("PROCESSES_LEFT_BEHIND", message + ", ".join(map(str, pids)), {"pids": pids}, WARNING)
            log.warning("engine.processes_left_behind", claim=str(self.claim), pids=pids)
        fields = self.session.judge(end, settings.ADE_RUN_TIMEOUT_SECONDS)
        stored = artifacts.store(directory, self.claim.id, self.claim.holder.token)
        data = {
            "engine": "warm" if warm else "cold",
            "seconds": round(end.seconds, 4),
            "cpu_seconds": round(end.cpu_seconds, 4),
            "max_rss_bytes": end.max_rss_bytes,
            "fields": len(fields),
            "artifacts": len(stored),
        }
        return Results(fields, stored, data)


def _read(claim: Claim) -> tuple[Document, Parts, str]:
    """Return the run's document, which of its parts exist, and the name of its environment."""
    build_id = claim.values["build_id"]
    if build_id not in _environments:
        build = Build.objects.values_list("fingerprint", "lock").get(pk=build_id)
        _environments[build_id] = environments.name_of(*build)
    ((*values, has_fields, has_tables, words_job),) = compiled.rows(_document, claim.values["input_document_id"])
    document = Document.from_db(connection.alias, list(COLUMNS), values)
    return document, Parts(bool(has_fields), bool(has_tables), words_job), _environments[build_id]


def _retried(claim: Claim, read: Callable[[], T]) -> T:
    """Read from the database. Retry while the claim is trusted: giving up would fail the run, which is claimed only
    once.
    """
    while True:
        try:
            return read()
        except (OperationalError, InterfaceError):
            connection.close()
            claim.go_on()
            time.sleep(PAUSE_SECONDS)


def _document(id: int) -> "QuerySet[Document, Any]":
    # A statement for a part that most documents do not have would cost every run a round trip.
    of_this = {"document": OuterRef("pk")}
    has_fields = Exists(DocumentField.objects.filter(**of_this)) | Exists(FieldCorrection.objects.filter(**of_this))
    has_tables = Exists(DocumentTable.objects.filter(**of_this))
    rows = Document.objects.filter(pk=id).annotate(has_fields=has_fields, has_tables=has_tables)
    return rows.values_list(*COLUMNS, "has_fields", "has_tables", "words_job")


def _materialize(claim: Claim, journal: Journal, started: float, reason: str) -> None:
    """Make the environment again from the build's lock, because it was made on another host, or was pruned or changed
    on this one.
    """
    build = Build.objects.only("snapshot", "fingerprint", "lock").get(pk=claim.values["build_id"])
    message = f"Build {build.pk} is ready, but its environment on this host {reason}. It is made again from the lock."
    journal.tell("ENVIRONMENT_MATERIALIZED", message)
    watch = Watch(
        until=started + settings.ADE_RUN_TIMEOUT_SECONDS,
        time=f"the time limit of a run, {settings.ADE_RUN_TIMEOUT_SECONDS} s (ADE_RUN_TIMEOUT_SECONDS)",
        stop=journal.why_stop,
        on_start=journal.keep,
        say=journal.lines,
    )
    builder.make(build.snapshot, build.fingerprint, watch, build.lock)
