"""Builds and runs that are claimed and done in this thread, as a slot of a worker does them."""

import re
from contextlib import contextmanager
from threading import Event as Flag

from builds import environments, fingerprint
from builds.models import Build
from builds.work_types import BUILD
from runs.work_types import RUN
from tests.factories import W1, BuildFactory, ConfigurationFactory, DocumentFactory, RunFactory, events_of
from work.claims import Holdings
from work.worker_thread import Bell, WorkerThread


def step(*body, before=""):
    """Return a main.py with one step."""
    lines = "".join(f"    {line}\n" for line in body or ["pass"])
    return f"from ade_engine import step\n{before}\n\n@step\ndef read(context):\n{lines}"


def queued(main=None, **contents):
    files = contents.pop("files", {"main.py": main if main is not None else step()})
    return BuildFactory(configuration=ConfigurationFactory(files=files, **contents))


def built(main=None, **contents):
    """Queue a build and do it."""
    return work_on(queued(main, **contents))


def ran(build):
    return work_on(run_of(build))


def run_of(build):
    """Queue a run of a document without a file."""
    document = DocumentFactory(
        workspace=build.configuration.workspace, file="", content_type="text/plain", status="processed"
    )
    return RunFactory(configuration=build.configuration, build=build, input_document=document)


def work_on(row, owner=W1):
    """Do the next row in the queue, which must be this one."""
    assert slot(BUILD if isinstance(row, Build) else RUN, owner).run_once()
    row.refresh_from_db()
    return row


def slot(kind, owner=W1):
    def contended(kind, met):
        raise met

    nothing = {"on_end": lambda kind: None, "on_contention": contended}
    return WorkerThread(kind, 0, owner=owner, bell=Bell(), holdings=Holdings(), stopping=Flag(), **nothing)


def path_of(build):
    return environments.path_of(environments.name_of(build.fingerprint, build.lock))


@contextmanager
def writable(*paths):
    """Make read-only paths of an environment writable, as their owner can, and restore the modes afterwards."""
    modes = [path.stat().st_mode for path in paths]
    for path, mode in zip(paths, modes, strict=True):
        path.chmod(mode | 0o700)
    yield
    for path, mode in zip(paths, modes, strict=True):
        path.chmod(mode)


def files_below(folder):
    return {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}


def left_behind():
    """Return the half-made and half-removed environments."""
    root = environments.root()
    names = (environments.BUILDING, environments.REMOVED)
    return [path.name for path in root.iterdir() if path.name.startswith(names)] if root.exists() else []


def log_of(row):
    return [event.message for event in events_of(row) if event.kind == "LOG"]


def value_of(run, name):
    return run.fields.get(name=name).value


def pinned(build):
    return dict(re.findall(r"^([\w-]+)==(\S+)", build.lock, re.MULTILINE))


def fingerprint_of(snapshot):
    return fingerprint.of_build(fingerprint.of_contents(snapshot))
