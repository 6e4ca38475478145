"""Runs of the witness configuration, through the lane as a worker takes them, each looked at for what it leaves."""

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
from runs.kinds import RUN
from runs.models import Run
from tests import azurite
from tests.factories import BuildFactory, ConfigurationFactory, DocumentFactory, told
from tests.work.supervised import needs_bubblewrap as needs_bubblewrap
from work import supervise
from work.claims import Holdings
from work.models import Event
from work.slots import Bell, Slot

WITNESS = Path(__file__).with_name("witness.py").read_text()
STEP = "from ade_engine import step\n@step\ndef only(context):\n    context.field('a', 1)\n"
OWNER = "w1@here:101:boot1"
MAKE_SECONDS = 60
# In the command lines of what tests of one process share.
STAYS = ("work.children.launch", "tests.forkserver", azurite.PROGRAM)
# Warm is what a worker does; cold comes to the same, and takes longer.
WAYS = ["warm", pytest.param("cold", marks=pytest.mark.long)]
LEVELS = ["limits", pytest.param("bubblewrap", marks=needs_bubblewrap)]
each_level = pytest.mark.parametrize("level", LEVELS, indirect=True)
# What is of no concern: the run is warm, or walled off, only because something has to be chosen.
warm_only = pytest.mark.parametrize("way", ["warm"], indirect=True)
cold_only = pytest.mark.parametrize("way", ["cold"], indirect=True)


def snapshot_of(files, entry_point="main"):
    return {"entry_point": entry_point, "requirements": "", "python_version": "", "files": files}


def make_environment(files, entry_point="main"):
    """On this host, as the builder makes it; answers its fingerprint."""
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
        self.slot = Slot(
            RUN,
            0,
            owner=OWNER,
            bell=Bell(),
            holdings=self.holdings,
            stopping=Flag(),
            after=lambda kind: None,
            contended=lambda kind, met: self.contended.append(met),
        )
        self.configuration, self.fingerprint = self.configure({"main.py": WITNESS})

    def configure(self, files, entry_point="main", *, make=True):
        """A configuration with a build that is ready, and its environment here; answers both."""
        configuration = ConfigurationFactory(workspace=self.workspace, files=files, entry_point=entry_point)
        build = BuildFactory(configuration=configuration, status="ready")
        if make:
            assert make_environment(files, entry_point) == build.fingerprint
        return configuration, build.fingerprint

    def document(self, *deeds, name="deeds.txt"):
        content = "\n".join(deeds).encode()
        stored = default_storage.save("documents/deeds", ContentFile(content))
        return DocumentFactory(
            workspace=self.workspace, name=name, file=stored, content_type="text/plain", size_bytes=len(content)
        )

    def submit(self, *deeds, document=None, configuration=None, rewrite=False):
        if rewrite:
            Path(default_storage.path(document.file.name)).write_text("\n".join(deeds))
        document = document or self.document(*deeds)
        return runs.submit(configuration or self.configuration, document, actor="olga")

    def execute(self, *deeds, **options):
        """Submits a run that does these deeds, and takes it to its end; answers it as it is then."""
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
        """The slot takes the next run, also of the same document with other deeds in it, and it succeeds."""
        run = self.execute("field:well=yes", document=document, rewrite=document is not None)
        assert (run.status, run.error_message) == ("succeeded", "")


def error_of(run):
    return (run.status, run.failure_type, run.error_message)


def idle():
    """The warm engines that wait for their next run."""
    return list(engines.POOL._idle)


def field(run, name):
    return run.fields.get(name=name).value


def facts_of(lane, *before):
    run = lane.execute(*before, "facts")
    assert error_of(run) == ("succeeded", "", "")
    # Not by the way that is left when the other is shut.
    assert way_of(run) == ("warm" if settings.ADE_WARM_ENGINES else "cold")
    return field(run, "facts")


def lines(run):
    """What the run has written and logged."""
    found = Event.objects.filter(subject_kind="run", subject_id=run.pk, kind="LOG").order_by("sequence")
    return list(found.values_list("message", flat=True))


def data_of(run, kind):
    return Event.objects.filter(subject_kind="run", subject_id=run.pk, kind=kind).last().data


def took(run):
    return (run.finished_at - run.started_at).total_seconds()


def way_of(run):
    """Whether it was warm or cold, of one that has succeeded."""
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
    """Of runs; the idle engines have a folder each, with nothing in it."""
    pool = engines.POOL
    if pool._desk is None:
        return
    left = {path.name: sorted(os.listdir(path)) for path in pool._desk.path.iterdir()}
    expected = {each.folder.name: [supervise.SCRATCH] for each in pool._idle}
    assert left == expected, (left, expected)
    for each in pool._idle:
        assert not list(Path(each.folder, supervise.SCRATCH).iterdir())


def assert_no_process_is_left():
    """Of this process, but the launcher with its keepers, which are as they were forked, and what other tests share."""
    left = [each for each in psutil.Process().children(recursive=True) if not _stays(each)]
    gone, alive = psutil.wait_procs(left, timeout=2)
    assert not [each for each in alive if each.status() != psutil.STATUS_ZOMBIE], (gone, alive)


def _stays(process):
    try:
        return any(name in word for word in process.cmdline() for name in STAYS)
    except psutil.Error:
        return False


def named(name):
    """Who is alive under this name, in whatever session or pid namespace."""
    found = []
    for each in proc.processes():
        try:
            called = Path(f"/proc/{each.pid}/comm").read_text().strip()
        except OSError:
            continue
        if called == name and each.state not in "ZX":
            found.append(each)
    return found
