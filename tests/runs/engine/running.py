"""Run the witness configuration through the lane as a worker does, and check what each run leaves."""

import os
import time
from pathlib import Path
from threading import Event as Flag

import psutil
import pytest
from django.conf import settings
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from ade_keeper import proc
from builds import builder, environments, fingerprint
from builds.builder import Watch
from runs import engines
from runs import lifecycle as runs
from runs.models import Run
from runs.work_types import RUN
from tests import azurite
from tests.factories import BuildFactory, ConfigurationFactory, DocumentFactory, told
from tests.work.supervised import needs_bubblewrap as needs_bubblewrap
from tests.work.supervised import needs_groups as needs_groups
from work.claims import Holdings
from work.models import Event
from work.processes import supervise
from work.worker_thread import Bell, WorkerThread

WITNESS = Path(__file__).with_name("witness.py").read_text()
STEP = "from ade_engine import step\n@step\ndef only(context):\n    context.field('a', 1)\n"
OWNER = "w1@here:101:boot1"
MAKE_SECONDS = 60
# Parts of the command lines of processes that all tests of one process share.
STAYS = ("work.processes.spawner", "tests.forkserver", azurite.PROGRAM)
# Workers use warm engines; cold ones give the same result and take longer.
WAYS = ["warm", pytest.param("cold", marks=pytest.mark.long)]
LEVELS = ["limits", pytest.param("bubblewrap", marks=needs_bubblewrap)]
each_level = pytest.mark.parametrize("level", LEVELS, indirect=True)
# For tests that need only one of the ways, or that depend on it.
warm_only = pytest.mark.parametrize("way", ["warm"], indirect=True)
cold_only = pytest.mark.parametrize("way", ["cold"], indirect=True)


def snapshot_of(files, entry_point="main"):
    return {"entry_point": entry_point, "requirements": "", "python_version": "", "files": files}


def make_environment(files, entry_point="main"):
    """Build the environment on this host if it is missing; return its fingerprint."""
    snapshot = snapshot_of(files, entry_point)
    wanted = fingerprint.of_build(fingerprint.of_contents(snapshot))
    if not environments.exists(wanted):
        builder.make(snapshot, wanted, Watch(until=time.monotonic() + MAKE_SECONDS))
    return wanted


class Lane:
    """One slot of a worker, in this process and thread."""

    def __init__(self, workspace):
        self.workspace = workspace
        self.holdings = Holdings()
        self.contended = []
        self.slot = WorkerThread(
            RUN,
            0,
            owner=OWNER,
            bell=Bell(),
            holdings=self.holdings,
            stopping=Flag(),
            on_end=lambda kind: None,
            on_contention=lambda kind, met: self.contended.append(met),
        )
        self.configuration, self.fingerprint = self.configure({"main.py": WITNESS})

    def configure(self, files, entry_point="main", *, make=True):
        """Create a configuration with a ready build, and its environment if `make`; return the configuration and the
        fingerprint.
        """
        configuration = ConfigurationFactory(workspace=self.workspace, files=files, entry_point=entry_point)
        build = BuildFactory(configuration=configuration, status="ready")
        if make:
            assert make_environment(files, entry_point) == build.fingerprint
        return configuration, build.fingerprint

    def document(self, *deeds, name="deeds.txt"):
        content = "\n".join(deeds).encode()
        stored = default_storage.save("documents/deeds", ContentFile(content))
        columns = {"name": name, "file": stored, "content_type": "text/plain", "size_bytes": len(content)}
        return DocumentFactory(workspace=self.workspace, status="processed", **columns)

    def submit(self, *deeds, document=None, configuration=None, rewrite=False, wait_for_processing=True):
        if rewrite:
            Path(default_storage.path(document.file.name)).write_text("\n".join(deeds))
        document = document or self.document(*deeds)
        configuration = configuration or self.configuration
        return runs.submit(configuration, document, actor="olga", wait_for_processing=wait_for_processing)

    def execute(self, *deeds, **options):
        """Submit a run with these deeds and execute it; return it in its final state."""
        run = self.submit(*deeds, **options)
        self.run_once()
        run = Run.objects.get(pk=run.pk)
        assert run.status in Run.TERMINAL, run
        assert_nothing_is_kept_of_what_failed(run)
        assert_no_directory_is_left()
        return run

    def run_once(self):
        assert self.slot.run_once()
        assert not self.contended
        assert not list(self.holdings)

    def assert_well(self, document=None):
        """Check that the slot takes a next run and that it succeeds, even for the same document with other deeds."""
        run = self.execute("field:well=yes", document=document, rewrite=document is not None)
        assert (run.status, run.error_message) == ("succeeded", "")


def error_of(run):
    return (run.status, run.failure_type, run.error_message)


def idle():
    """Return the warm engines that wait for their next run."""
    return list(engines.POOL._idle)


def field(run, name):
    return run.fields.get(name=name).value


def facts_of(lane, *before):
    run = lane.execute(*before, "facts")
    assert error_of(run) == ("succeeded", "", "")
    # It must not have used the fallback way.
    assert way_of(run) == ("warm" if settings.ADE_WARM_ENGINES else "cold")
    return field(run, "facts")


def lines(run):
    """Return the output and log lines of the run."""
    found = Event.objects.filter(subject_kind="run", subject_id=run.pk, kind="LOG").order_by("sequence")
    return list(found.values_list("message", flat=True))


def data_of(run, kind):
    return Event.objects.filter(subject_kind="run", subject_id=run.pk, kind=kind).last().data


def took(run):
    return (run.finished_at - run.started_at).total_seconds()


def way_of(run):
    """Return "warm" or "cold" for a run that has succeeded."""
    return data_of(run, "RUN_SUCCEEDED")["engine"]


def assert_nothing_is_kept_of_what_failed(run):
    kept = [f"runs/{run.pk}/{path}" for path in files_below(Path(default_storage.path(f"runs/{run.pk}")))]
    known = sorted(run.artifacts.values_list("file", flat=True))
    assert sorted(kept) == known, (error_of(run), kept, known)
    if run.status != "succeeded":
        assert not kept
        assert not run.fields.exists()
    assert "RUN_STARTED" in told(run)


def files_below(folder):
    return [os.path.relpath(os.path.join(at, name), folder) for at, _, names in os.walk(folder) for name in names]


def assert_no_directory_is_left():
    """Check that no run directory remains; each idle engine has an empty folder."""
    pool = engines.POOL
    if pool._desk is None:
        return
    left = {path.name: sorted(os.listdir(path)) for path in pool._desk.path.iterdir()}
    expected = {each.folder.name: [supervise.SCRATCH] for each in pool._idle}
    assert left == expected, (left, expected)
    for each in pool._idle:
        assert not list(Path(each.folder, supervise.SCRATCH).iterdir())


def assert_no_process_is_left():
    """Check that no child remains, except the spawner with its guards in the state after the fork, and what tests
    share.
    """
    left = [each for each in psutil.Process().children(recursive=True) if not _stays(each)]
    gone, alive = psutil.wait_procs(left, timeout=60)
    assert not [each for each in alive if each.status() != psutil.STATUS_ZOMBIE], (gone, alive)


def _stays(process):
    try:
        return any(name in word for word in process.cmdline() for name in STAYS)
    except psutil.Error:
        return False


def named(name):
    """Return the processes with this name, in any session or PID namespace."""
    found = []
    for each in proc.processes():
        try:
            called = Path(f"/proc/{each.pid}/comm").read_text().strip()
        except OSError:
            continue
        if called == name and each.state not in "ZX":
            found.append(each)
    return found
