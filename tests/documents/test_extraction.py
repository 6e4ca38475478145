import hashlib
import json
import re
import time

import pytest
from django.conf import settings

import ade_extractor
from ade_extractor import PROGRESS
from documents.extraction import ExtractionFailed, local
from documents.extraction.local import extract
from tests.extractor.extracting import HTML, PDF, TXT, written
from tests.extractor.pdfs import long_pdf, pdf_of
from work.claims import Interrupted
from work.processes import supervise

pytestmark = pytest.mark.once


@pytest.fixture
def directory(tmp_path):
    made = tmp_path / "output"
    made.mkdir()
    return made


@pytest.fixture
def pretend(monkeypatch):
    """Return a function that replaces the program of the extractor."""

    def put(program):
        monkeypatch.setattr(ade_extractor, "PROGRAM", f"import os, sys, signal, time, json\n{program}")

    return put


TELL = "def tell(**values): os.write(int(os.environ['ADE_EVENTS_FD']), json.dumps(values).encode() + b'\\n')\n"
DONE = "tell(kind='extracted', pages_total=1, pages=1, characters=0, seconds=0)\n"


def failed(tmp_path, directory, *, wall_seconds=30.0):
    file = written(tmp_path / "any", "any")
    with pytest.raises(ExtractionFailed) as caught:
        extract(file, TXT, 1, 1, directory, wall_seconds=wall_seconds)
    return caught.value.code, caught.value.permanent


def test_pages_lie_in_the_directory_with_their_checksum(tmp_path, directory):
    file = pdf_of(tmp_path / "a.pdf", "one", "two", "three")

    extracted = extract(file, PDF, 2, 3, directory, wall_seconds=30)

    assert extracted.pages_total == 3
    assert extracted.path == directory / "pages.json"
    assert extracted.sha256 == hashlib.sha256(extracted.path.read_bytes()).hexdigest()
    assert [page["text"] for page in json.loads(extracted.path.read_bytes())["pages"]] == ["two", "three"]


def test_progress_is_left_and_the_child_is_shown(tmp_path, directory):
    children = []

    extract(long_pdf(tmp_path / "a.pdf", 4, words=9), PDF, 2, 4, directory, wall_seconds=30, on_start=children.append)

    assert (directory / PROGRESS).read_bytes() == b"4"
    assert children[0].ended.returncode == 0


def test_what_the_extractor_says_is_handed_on(tmp_path, directory):
    file = written(tmp_path / "a.pdf", "no PDF")

    with pytest.raises(ExtractionFailed, match=r"^This PDF cannot be read: its header is missing\.") as caught:
        extract(file, PDF, 1, 1, directory, wall_seconds=30)

    assert (caught.value.code, caught.value.permanent) == ("malformed", True)
    assert caught.value.message == str(caught.value)


def test_one_that_is_stopped_is_interrupted(tmp_path, directory, pretend):
    pretend("time.sleep(600)")
    before = time.monotonic()

    with pytest.raises(Interrupted) as caught:
        extract(written(tmp_path / "a", "a"), TXT, 1, 1, directory, wall_seconds=300, stop=lambda: "lease_lost")

    assert caught.value.reason == "lease_lost"
    assert time.monotonic() - before < 200


SIGNALS = {
    "SIGSEGV": ("malformed", True),
    "SIGBUS": ("malformed", True),
    "SIGABRT": ("too_large", True),
    "SIGTRAP": ("too_large", True),
    "SIGXCPU": ("too_slow", True),
    "SIGKILL": ("internal", False),
    "SIGTERM": ("internal", False),
}


@pytest.mark.parametrize("name", SIGNALS)
def test_the_death_of_the_child_is_judged(tmp_path, directory, pretend, name):
    pretend(f"signal.signal(signal.{name}, 0) if '{name}' != 'SIGKILL' else 0; os.kill(os.getpid(), signal.{name})")

    assert failed(tmp_path, directory) == SIGNALS[name]


@pytest.mark.parametrize(
    ("program", "wall_seconds", "verdict"),
    [
        ("time.sleep(60)", 1, ("timed_out", False)),
        ("while True: pass", 2, ("too_slow", True)),
        ("sys.exit(0)", 30, ("internal", False)),
        ("sys.exit(1)", 30, ("internal", False)),
        (f"{TELL}{DONE}sys.exit(1)", 30, ("internal", False)),
        (f"{TELL}tell(kind='failed')\nsys.exit(1)", 30, ("internal", False)),
        (f"{TELL}os.symlink('/etc/passwd', 'pages.json')\n{DONE}", 30, ("internal", False)),
        (f"{TELL}os.mkfifo('pages.json')\n{DONE}", 30, ("internal", False)),
        (f"{TELL}{DONE}", 30, ("internal", False)),
    ],
    ids=["asleep", "busy", "silent", "exits", "told, and exits", "says nothing", "link", "pipe", "no output"],
)
def test_an_end_without_a_result_is_judged(tmp_path, directory, pretend, monkeypatch, program, wall_seconds, verdict):
    # With other load on the machine, this process may get little processor time.
    monkeypatch.setattr(local, "BUSY_SHARE", 0.1)
    pretend(program)

    assert failed(tmp_path, directory, wall_seconds=wall_seconds) == verdict


def test_memory_is_limited(tmp_path, directory, pretend):
    program = "try: bytearray(3 << 30)\nexcept MemoryError: tell(kind='failed', code='as told', permanent=True)"
    pretend(f"{TELL}{program}\nsys.exit(1)")

    assert failed(tmp_path, directory) == ("as told", True)


@pytest.mark.skipif(supervise.sandbox_level() != "bubblewrap", reason="bubblewrap is not installed, or forbidden here")
def test_nothing_of_ours_can_be_seen_but_the_file(tmp_path, pretend, monkeypatch):
    var = tmp_path / "var"
    monkeypatch.setattr(settings, "VAR_DIR", var)
    (var / "media").mkdir(parents=True)
    written(var / "secret_key", "secret")
    other, file = written(var / "media" / "other", "theirs"), written(var / "media" / "mine", "mine")
    inside = var / "work"
    inside.mkdir()
    looked = f"[os.path.exists(path) for path in {[str(file), str(other), str(var / 'secret_key')]!r}]"
    pretend(f"{TELL}json.dump({looked}, open('pages.json', 'w'))\n{DONE}")

    extracted = extract(file, TXT, 1, 1, inside, wall_seconds=30)

    assert json.loads(extracted.path.read_bytes()) == [True, False, False]


@pytest.mark.skipif(supervise.sandbox_level() != "bubblewrap", reason="bubblewrap is not installed, or forbidden here")
def test_there_is_no_network(tmp_path, directory, pretend):
    pretend(
        f"{TELL}import socket\njson.dump([name for _, name in socket.if_nameindex()], open('pages.json', 'w'))\n{DONE}"
    )

    extracted = extract(written(tmp_path / "a", "a"), TXT, 1, 1, directory, wall_seconds=30)

    assert json.loads(extracted.path.read_bytes()) == ["lo"]


def test_the_real_one_imports_neither_django_nor_the_configuration_of_ade(tmp_path, directory, pretend):
    pretend(
        "sys.path.append(sys.argv.pop(1))\nfrom ade_extractor.main import main\n"
        "try: main()\nfinally: json.dump(sorted(sys.modules), open('modules.json', 'w'))"
    )

    extract(written(tmp_path / "a.html", "<p>x"), HTML, 1, 1, directory, wall_seconds=30)

    modules = set(json.loads((directory / "modules.json").read_text()))
    assert "ade_extractor.hypertext" in modules
    assert modules.isdisjoint({"django", "config", "documents", "work", "pypdfium2", "docx"})


def test_nobody_else_imports_more_of_it_than_its_constants():
    apps = ("work", "schedules", "workspaces", "documents", "builds", "runs", "config")
    sources = {path: path.read_text() for app in apps for path in (settings.BASE_DIR / app).rglob("*.py")}

    importing = {path.name for path, source in sources.items() if re.search(r"(import|from) ade_extractor", source)}

    assert importing == {"local.py", "children.py", "reader_sessions.py"}
    assert not any(re.search(r"(import|from) ade_extractor(\.| import)", source) for source in sources.values())


def test_an_output_of_before_is_replaced(tmp_path, directory):
    written(directory / "pages.json", "old")
    file = written(tmp_path / "a.txt", "new")

    extracted = extract(file, TXT, 1, 1, directory, wall_seconds=30)

    assert b"new" in extracted.path.read_bytes()


def test_an_output_of_before_is_not_taken_for_a_new_one(tmp_path, directory, pretend):
    written(directory / "pages.json", "old")
    pretend(f"{TELL}{DONE}")

    assert failed(tmp_path, directory) == ("internal", False)
