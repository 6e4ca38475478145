"""Run an example as a worker does, but with the Python of the tests instead of a separate environment."""

import hashlib
import json
import mimetypes
import os
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings

from ade_engine.channel import VARIABLE
from runs import checking

EXAMPLES = Path(settings.BASE_DIR) / "examples"
START = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from ade_engine import runner
runner.run_here(lambda: runner.load(Path(sys.argv[2])))
"""
TYPES = {".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"}


@dataclass(frozen=True)
class Outcome:
    directory: Path
    events: list[dict[str, Any]]
    printed: str

    @property
    def result(self):
        return next(event for event in reversed(self.events) if event["kind"] == "result")

    @property
    def fields(self):
        """Return the fields by name; the first if a name occurs several times."""
        return {field["name"]: field for field in reversed(self.all_fields)}

    @property
    def all_fields(self):
        return [event for event in self.events if event["kind"] == "field"]

    @property
    def log(self):
        return [event["message"] for event in self.events if event["kind"] == "log"]

    def value(self, name):
        return self.fields[name]["value"]

    def artifact(self, name):
        return (self.directory / "artifacts" / name).read_bytes()

    def artifacts(self):
        root = self.directory / "artifacts"
        return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def run_example(example, directory, name, content, *, text=None, content_type=None):
    """Run every step over a document with this name and content, in `directory`. Nothing is understood of it."""
    work = directory / "work"
    work.mkdir(parents=True)
    files = {}
    if text is not None:
        (work / "text").write_text(text)
        files["text"] = "text"
    prepare_input(work, name, content, content_type, **files)
    return run_prepared(example, directory)


def run_read_example(example, directory, name, content):
    """Run every step over a document that the reader has read and understood."""
    for folder in ("work", "reading", "input"):
        (directory / folder).mkdir(parents=True)
    path = directory / "input" / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    checking.lay_out(directory / "work", path, directory / "reading")
    return run_prepared(example, directory)


def run_prepared(example, directory):
    """Run every step over the input in the folder `work`."""
    environment, work = directory / "environment", directory / "work"
    prepare_environment(environment, EXAMPLES / example)
    reading, writing = os.pipe()
    with (work / "printed").open("wb") as printed, open(reading, encoding="utf-8") as told:
        process = start(environment, work, writing, printed)
        os.close(writing)
        events = [json.loads(line) for line in told]
        process.wait()
    return Outcome(work, events, (work / "printed").read_text())


def start(environment, work, tell, printed):
    return subprocess.Popen(
        [sys.executable, "-I", "-B", "-c", START, str(settings.PROGRAMS_DIR), str(environment)],
        cwd=work,
        env={VARIABLE: str(tell), "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
        pass_fds=[tell],
        stdin=subprocess.DEVNULL,
        stdout=printed,
        stderr=subprocess.STDOUT,
    )


def prepare_environment(environment, package):
    environment.mkdir(parents=True)
    declared = tomllib.loads((package / "ade.toml").read_text())["configuration"]
    (environment / "ade.json").write_text(json.dumps({"entry_point": declared["entry_point"]}))
    (environment / "configuration").symlink_to(package)


def prepare_input(work, name, content, content_type=None, **files):
    """Write the engine's input; `files` are the names of files in `work`, and other things known of the document."""
    content = content.encode() if isinstance(content, str) else content
    (work / "document").write_bytes(content)
    told = {
        "name": name,
        "content_type": content_type or TYPES.get(Path(name).suffix) or mimetypes.guess_type(name)[0] or "text/plain",
        "size_bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "file": "document",
        **files,
    }
    (work / "input.json").write_text(json.dumps({"document": told}))
