"""The checks of `manage.py doctor`: first settings, storage, database and workers, then the invariants."""

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from django.conf import settings
from django.core import checks
from django.db import Error, connection
from django.db.migrations.executor import MigrationExecutor
from django.utils.text import capfirst

from builds import uv
from config import job_checks
from config.database_checks import isolation, sql_server_is_fit, sqlite_is_on_a_local_disk, sqlite_mode
from config.environment_checks import environments_are_sealed
from config.file_checks import Files, files_are_whole
from config.findings import Finding as Finding
from config.findings import Level as Level
from config.findings import fail, ok, warn
from config.remote_checks import feeds_answer, services_answer
from config.token_checks import demo_user_is_for_trying, tokens_last
from documents import fulltext, indexing, storage, vectors
from documents.extraction.local import ocr_engine
from documents.extraction.outcome import OCR_ADVICE
from documents.models import DocumentProcessingJob, Stage
from documents.models.columns import has_vectors
from work import clock, schema
from work.health import FEW_FREE_BYTES, LEAST_FREE_BYTES
from work.invariants import Invariant, all_invariants
from work.models import Work, Worker
from work.processes import hardening
from work.state_machine import By
from work.work_types import WorkType, all_work_types

MOST_OFFENDERS = 10
# With a larger difference, times in logs cannot be compared with times in the database.
CLOCK_SECONDS = 5.0
COUNTED = 1000
LOCAL_HOSTS = {"localhost", "127.0.0.1", "[::1]"}


@dataclass(frozen=True)
class Check:
    name: str
    # What the check may find, or for an invariant what must hold. For docs/reference/doctor.md.
    finding: str
    look: Callable[[], Finding]
    # Whether later checks cannot run if this one fails.
    is_ground: bool = False
    # The check is only for databases of this vendor; "" means all.
    vendor: str = ""

    def run(self) -> Finding:
        try:
            return self.look()
        except (Error, OSError) as error:
            return fail(" ".join(str(error).split()), "This check could not be run. The earlier checks may show why.")


def all_checks(*, thorough: bool = False, files: Files = Files.SAMPLE, vendor: str | None = None) -> Iterator[Check]:
    """Yield the checks for a database of this vendor: by default the vendor in use; for "", the checks of all vendors.

    With `thorough`, also read all files of environments, which takes seconds per GB.
    """
    vendor = connection.vendor if vendor is None else vendor
    yield Check("settings.checks", "Django finds a problem", system_checks)
    yield Check("settings.tests", "ADE_ALLOW_FAILPOINTS is on", nothing_for_tests)
    yield Check("settings.debug", "DEBUG is true, and ALLOWED_HOSTS has other hosts", no_debugging_for_others)
    yield Check("storage.writable", "fails: files cannot be stored, or the container is public", storage_is_writable)
    yield Check("storage.space", "less than 1 GB is free; fails below 100 MB", storage_has_space)
    yield Check("builds.uv", "fails: uv does not run", uv_is_there)
    yield Check("builds.sandbox", "fails: no working bubblewrap, or ADE_SANDBOX=off", children_are_walled_off)
    yield Check("builds.limits", "the kernel does not enforce a limit", limits_are_enforced)
    yield Check(
        "builds.environments",
        "fails: environments differ from their seals; warns if they have none",
        partial(environments_are_sealed, thorough=thorough),
    )
    yield Check("documents.ocr", "none; it names the OCR engine", scans_are_read)
    yield Check("database.answers", "fails: no connection", database_answers, is_ground=True)
    yield Check(
        "database.migrations", "fails: the schema is of another version", migrations_are_applied, is_ground=True
    )
    yield Check("database.clock", "host and database differ by more than 5 s", clocks_agree)
    on_network = "fails: it is on a network file system"
    yield Check("database.sqlite_file", on_network, sqlite_is_on_a_local_disk, vendor="sqlite")
    yield Check("database.sqlite_mode", "fails: WAL or foreign keys are off", sqlite_mode, vendor="sqlite")
    yield Check("database.isolation", "transactions are not read committed", isolation, vendor="postgresql")
    unfit = "fails: too old, a collation without case, or no row versions"
    yield Check("database.sql_server", unfit, sql_server_is_fit, vendor="microsoft")
    yield Check("documents.files", "fails: a stored file is missing or damaged", partial(files_are_whole, files))
    yield Check("services.answering", "Azure or OpenAI does not answer", services_answer)
    yield Check("search.words", "fails: SQLite's full-text table differs from the chunks", words_can_be_looked_up)
    yield Check("search.vectors", "vectors on PostgreSQL have no index", vectors_are_indexed)
    yield Check("workers.alive", "no worker is alive (fails if work waits), or all drain", workers_are_alive)
    yield Check("workers.slots", "no worker has a thread for waiting work", workers_have_slots)
    yield Check("workers.version", "a worker runs another version", workers_are_of_this_version)
    yield Check("schedules.watched", "no worker watches the schedules", job_checks.schedules_are_watched)
    yield Check("schedules.slots", "slots of the last day did not run", job_checks.slots_are_run)
    yield Check("schedules.table", "django-q2's tables have foreign or damaged rows", job_checks.schedules_are_ours)
    yield Check("tokens.last", "tokens expire within seven days", tokens_last)
    yield Check("people.demo", "with DEBUG=false, the superuser demo can sign in", demo_user_is_for_trying)
    yield Check("feeds.answering", "feeds have failed for three days", feeds_answer)
    for invariant in all_invariants():
        yield Check(f"invariant.{invariant.name}", invariant.promise, partial(holds, invariant))


def system_checks() -> Finding:
    problems = [
        message
        for message in checks.run_checks(include_deployment_checks=not settings.DEBUG)
        if message.level >= checks.WARNING and not message.is_silenced()
    ]
    if not problems:
        return ok("Django's system checks found no problems")
    text = "; ".join(f"{message.id}: {' '.join(str(message.msg).split())}" for message in problems)
    is_serious = any(message.level >= checks.ERROR for message in problems)
    return (fail if is_serious else warn)(text, "Run `manage.py check --deploy` for details.")


def nothing_for_tests() -> Finding:
    if settings.ADE_ALLOW_FAILPOINTS:
        return warn("ADE_ALLOW_FAILPOINTS is true", "It is for tests only. Set it to false where the data matters.")
    return ok("no test setting is active")


def no_debugging_for_others() -> Finding:
    others = sorted(set(settings.ALLOWED_HOSTS) - LOCAL_HOSTS)
    if settings.DEBUG and others:
        return warn(
            f"DEBUG is true, and ALLOWED_HOSTS has {', '.join(others)}",
            "Error pages show internal details to strangers. Set DEBUG to false.",
        )
    return ok(f"DEBUG is {str(settings.DEBUG).lower()}")


def storage_is_writable() -> Finding:
    return container_is_usable() if settings.ADE_STORAGE == "azure" else directory_is_writable()


def container_is_usable() -> Finding:
    name = settings.ADE_AZURE_CONTAINER
    try:
        storage.check()
        if storage.files.is_public():
            return fail(f"strangers can read the container {name!r}", "Make it private: disable public access.")
    except OSError as error:
        return fail(
            f"cannot write, read and delete files in the container {name!r}: {error.strerror}",
            "`manage.py up` and `az storage container create` create a missing container. "
            "Otherwise check ADE_AZURE_STORAGE_CONNECTION and the network rules of the storage account.",
        )
    return ok(f"the container {name!r} can be read and written, and is private")


def directory_is_writable() -> Finding:
    path = Path(settings.MEDIA_ROOT)
    advice = f"Make {path} a directory that ADE's user can write to."
    if path.exists() and not path.is_dir():
        return fail(f"{path} is not a directory", advice)
    path.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.NamedTemporaryFile(dir=path) as file:
            file.write(b"doctor")
            file.flush()
    except OSError as error:
        return fail(f"cannot write to {path}: {error.strerror}", advice)
    return ok(f"{path} is writable")


def storage_has_space() -> Finding:
    free = {path: shutil.disk_usage(path).free for path in (settings.VAR_DIR, settings.MEDIA_ROOT) if path.exists()}
    path, least = min(free.items(), key=lambda item: item[1])
    message = f"{least / 2**30:.1f} GB are free in {path}"
    if least < LEAST_FREE_BYTES:
        return fail(message, "Free disk space now: the next file or row may not fit.")
    return warn(message, "Free disk space soon.") if least < FEW_FREE_BYTES else ok(message)


def uv_is_there() -> Finding:
    advice = "Builds need uv. Install requirements/base.txt, for example with `make setup`."
    try:
        program = uv.program()
        version = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        return fail(" ".join(str(error).split()), advice)
    return ok(f"{version.strip()}, {program}")


def children_are_walled_off() -> Finding:
    if hardening.NO_SANDBOX in hardening.weaknesses():
        message = f"ADE_SANDBOX={settings.ADE_SANDBOX}. {hardening.SAID[hardening.NO_SANDBOX]}"
        return fail(message, hardening.ADVICE[hardening.NO_SANDBOX])
    return ok("engines, readers and builds run inside bubblewrap")


def limits_are_enforced() -> Finding:
    always = "the memory, processes and disk space of a run are checked twice a second"
    if missing := hardening.unenforced_limits():
        return warn(
            f"{always}; {'; '.join(missing)}",
            "See docs/security.md for the limits that each kind of machine enforces.",
        )
    return ok(f"the kernel enforces the limits of each process; {always}")


def scans_are_read() -> Finding:
    """Report whether scans can be read. This never fails, because an installation without scans needs no OCR."""
    if engine := ocr_engine():
        return ok(f"scans are read by {engine}")
    return ok(f"no text recognition (OCR) is installed, so scans stay without text; to change this, {OCR_ADVICE}")


def database_answers() -> Finding:
    try:
        connection.ensure_connection()
    except Error as error:
        return fail(" ".join(str(error).split()), "Start the database, or correct DATABASE_URL.")
    version = ".".join(map(str, connection.get_database_version()))
    return ok(f"{connection.display_name} {version}, {connection.settings_dict['NAME']}")


def migrations_are_applied() -> Finding:
    executor = MigrationExecutor(connection)
    if schema.is_too_old(executor.loader.applied_migrations):
        return fail(schema.TOO_OLD, f"{capfirst(schema.ADVICE)}.")
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if plan:
        return fail(f"{len(plan)} migrations are not applied; the first is {plan[0][0]}", "Run `manage.py migrate`.")
    return ok(f"all {len(executor.loader.applied_migrations)} migrations are applied")


def clocks_agree() -> Finding:
    clock.measure()
    off = (datetime.now(UTC) - clock.now()).total_seconds()
    message = f"the clock of this host differs from the database's by {off:+.1f} s"
    if abs(off) > CLOCK_SECONDS:
        return warn(message, "ADE uses the database's clock. Synchronise both with NTP, so that logs can be compared.")
    return ok(message)


def words_can_be_looked_up() -> Finding:
    if connection.vendor == "postgresql":
        return ok("PostgreSQL full-text index")
    if not fulltext.has_index():
        return warn(
            "there is no full-text index",
            "Every search reads all texts. PostgreSQL and most builds of SQLite have a full-text index.",
        )
    if fulltext.is_kept_in_step() and fulltext.is_whole():
        return ok("SQLite full-text table, which matches the chunks")
    return fail("SQLite's full-text table does not match the chunks", "Run `manage.py document index --rebuild`.")


def vectors_are_indexed() -> Finding:
    if connection.vendor != "postgresql":
        return ok("vectors are compared by ADE itself, which suits up to a few hundred thousand")
    if not has_vectors(connection):
        return warn(
            "vectors are stored as bytes and compared by ADE itself: pgvector 0.8 is or was missing",
            "Install pgvector, run `CREATE EXTENSION vector` as a user who may, then `manage.py document index`.",
        )
    model = indexing.current_model()
    if not vectors.indexes().get(model.index):
        return warn(
            f"the vectors of {model.name} have no index",
            "Run `manage.py document index`. Other work continues meanwhile.",
        )
    return ok(f"pgvector, with an index for {model.name}")


def workers_are_alive() -> Finding:
    alive = Worker.objects.alive().count()
    waiting = ", ".join(number for _, number in _waiting())
    if alive and not Worker.objects.available().exists():
        return warn(
            f"{alive} alive, but all of them are draining and take no work; waiting: {waiting or 'nothing'}",
            "Their process manager starts new ones when they have stopped. Otherwise run `manage.py worker`.",
        )
    if alive:
        return ok(f"{alive} alive; waiting: {waiting or 'nothing'}")
    advice = "Start one with `manage.py worker`, or everything on this machine with `make up`."
    return fail(f"no worker is alive; waiting: {waiting}", advice) if waiting else warn("no worker is alive", advice)


def workers_have_slots() -> Finding:
    alive = list(Worker.objects.available())
    slots = {kind for worker in alive for kind, concurrency in worker.lanes.items() if concurrency}
    # Kinds without a handler need no threads: periodic tasks of every worker advance them.
    lacking = [number for kind, number in _waiting() if kind.handler is not None and kind.name not in slots]
    if alive and lacking:
        return warn(
            f"no worker has a thread for: {', '.join(lacking)}", "Start one that has; see `manage.py worker --help`."
        )
    return ok("every kind of waiting work has worker threads" if alive else "no worker takes work")


def workers_are_of_this_version() -> Finding:
    others = [
        f"{worker.owner} runs {worker.version}"
        for worker in Worker.objects.alive().order_by("id")
        if worker.version != settings.ADE_VERSION
    ]
    if others:
        return warn(
            f"{'; '.join(others)}; this is {settings.ADE_VERSION}", "Restart them: they still run the old code."
        )
    return ok(f"all workers run {settings.ADE_VERSION}, as this program does")


def holds(invariant: Invariant) -> Finding:
    breaches = invariant.breaches(MOST_OFFENDERS + 1)
    if not breaches:
        return ok("holds")
    more = " and more" if len(breaches) > MOST_OFFENDERS else ""
    offenders = tuple(breaches[:MOST_OFFENDERS])
    names = ", ".join(f"{kind} {id}" for kind, id in offenders)
    return fail(f"{invariant.promise} Violated by: {names}{more}.", invariant.advice, offenders)


def _waiting() -> Iterator[tuple[WorkType, str]]:
    """Yield each kind that has work waiting to be claimed, and how much, counted up to a limit."""
    for kind in all_work_types():
        model = kind.states.model
        takes = [kind.states[verb] for verb in kind.states if kind.states[verb].by in (By.WORKER, By.ORCHESTRATOR)]
        if issubclass(model, Work):
            origins = {origin for move in takes if move.target == model.ACTIVE for origin in move.origins}
            rows = kind.states.rows.filter(status__in=origins)
            # The condition of the stages' `claimable`: stages of a job that was given back cannot be claimed.
            rows = rows.filter(job__status=DocumentProcessingJob.Status.PROCESSING) if model is Stage else rows
            if count := rows[: COUNTED + 1].count():
                number = f"over {COUNTED}" if count > COUNTED else str(count)
                yield kind, f"{number} {model._meta.verbose_name_plural if count > 1 else model._meta.verbose_name}"
