from types import ModuleType

import pytest

from documents import children
from work.processes.supervise import Limits

# Prints its own PID and its parent's.
PROGRAM = """
import os, sys
sys.path.append(sys.argv.pop(1))
from ade_engine.channel import VARIABLE, own_channel
from ade_keeper import fork_server
def work(found):
    own_channel().send("worked", parent=os.getppid(), found=found)
    os._exit(0)
if sys.argv[1:2] == ["serve"]:
    fork_server.serve(int(sys.argv[2]), lambda: "warm", work, VARIABLE)
work("cold")
"""


@pytest.fixture
def program(settings, tmp_path, monkeypatch):
    settings.VAR_DIR = tmp_path / "var"
    monkeypatch.setattr(children, "_PACKAGES", dict(children._PACKAGES))
    package = ModuleType("of_an_app_above")
    package.PROGRAM, package.__path__ = PROGRAM, [str(tmp_path)]
    children.POOL.close()
    yield children.register("above", package)
    children.POOL.close()


def work_of(program, **options):
    events = []
    with children.program_directory(program, lambda: None, **options) as place:
        callbacks = {"on_start": lambda child: None, "on_event": events.append, "on_output": lambda lines: None}
        place.run([], cwd=place.directory, limits=Limits(wall_seconds=30), stop=lambda: None, **callbacks)
    (worked,) = events
    return worked


def test_a_program_of_an_app_above_is_kept_warm(program):
    first, second = work_of(program), work_of(program)

    assert (first["found"], second["found"]) == ("warm", "warm")
    assert first["parent"] == second["parent"]


def test_and_is_started_cold_where_it_need_not_be_warm(program):
    assert work_of(program, is_warm=False)["found"] == "cold"
