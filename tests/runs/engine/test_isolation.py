"""A run leaves nothing for another run, of the same workspace or of another, warm or cold."""

import os

import pytest

from runs import engines
from tests.factories import WorkspaceFactory
from tests.runs.engine.running import (
    STEP,
    Lane,
    each_level,
    error_of,
    facts_of,
    field,
    idle,
    needs_bubblewrap,
    warm_only,
    way_of,
)

pytestmark = [pytest.mark.once, pytest.mark.long, pytest.mark.usefixtures("way")]

SHARED = {
    "memory": "import mmap\nshared = mmap.mmap(-1, 4096)\n",
    "a descriptor (pipe": "import os\nends = os.pipe()\n",
    "a descriptor (socket": "import socket\npair = socket.socketpair()\n",
    "a descriptor (/": "import tempfile\nfile = tempfile.TemporaryFile()\n",
}


@pytest.fixture
def neighbour(lane):
    """A lane of another workspace with the same files, and so with the same environment."""
    other = Lane(WorkspaceFactory())
    assert other.fingerprint == lane.fingerprint
    return other


@needs_bubblewrap
@pytest.mark.parametrize("whose", ["the same workspace", "another workspace"])
def test_a_word_that_a_run_leaves_everywhere_is_found_nowhere(lane, neighbour, whose):
    leaving = lane.execute("leave:4711-canary")
    assert error_of(leaving) == ("succeeded", "", "")

    finding = (lane if whose == "the same workspace" else neighbour).execute("find:4711-canary")

    assert error_of(finding) == ("succeeded", "", "")
    # The run could leave the word in its own folders, which are gone now.
    assert not {"shared memory", "semget", "msgget", "queue", "key"} & set(field(leaving, "left"))
    assert field(finding, "found") == []


@needs_bubblewrap
def test_nothing_without_a_disk_behind_it_can_be_written(lane):
    """No limit counts files in memory, and they would stay."""
    run = lane.execute("leave:word")

    assert not {"/", "/run", "/dev", "/var/tmp", "/proc"} & set(field(run, "left"))


@warm_only
def test_each_workspace_has_warm_engines_of_its_own(lane, neighbour):
    ours, theirs = facts_of(lane), facts_of(neighbour)

    assert ours["imported_by"] != theirs["imported_by"] or len(idle()) != 1
    assert {each.owner for each in idle()} <= {lane.workspace.pk, neighbour.workspace.pk}


@warm_only
@needs_bubblewrap
def test_a_workspace_gets_its_own_engine_back(lane, neighbour):
    for each in (lane, neighbour, lane, neighbour):
        assert way_of(each.execute("field:a=1")) == "warm"

    assert {each.owner: each.fork_server.forked for each in idle()} == {lane.workspace.pk: 2, neighbour.workspace.pk: 2}


@warm_only
@each_level
def test_an_engine_serves_many_runs_only_behind_walls(lane, level):
    lane.execute("field:a=1")

    assert len(idle()) == (level == "bubblewrap")


@warm_only
@pytest.mark.parametrize("what", SHARED)
def test_a_configuration_that_shares_something_at_import_is_not_kept_warm(lane, what):
    configuration, fingerprint = lane.configure({"main.py": SHARED[what] + STEP})

    run = lane.execute("", configuration=configuration)

    assert error_of(run) == ("succeeded", "", "")
    assert way_of(run) == "cold"
    assert set(engines.POOL._hopeless) == {fingerprint}


@warm_only
@needs_bubblewrap
def test_a_file_that_an_import_has_begun_to_read_is_read_by_each_run_from_there(lane):
    code = "file = open(__file__, 'rb', buffering=0)\nfile.read(3)\n"
    code += "from ade_engine import step\n@step\ndef only(context):\n    context.field('read', file.read(4).decode())\n"
    configuration, _ = lane.configure({"main.py": code})

    read = []
    for _ in range(2):
        run = lane.execute("", configuration=configuration)
        assert way_of(run) == "warm"
        read.append(field(run, "read"))

    assert read == ["e = "] * 2


@needs_bubblewrap
def test_a_listener_on_the_machine_does_not_answer(lane, tmp_path):
    """The socket is a file that the run cannot see."""
    run = lane.execute(f"look:{tmp_path},/root/.ssh,/home,/etc/shadow,{os.getcwd()}/manage.py")

    assert set(field(run, "looked").values()) <= {"No such file or directory", "Permission denied"}
