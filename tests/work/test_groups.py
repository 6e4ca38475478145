"""Where ADE may create control groups, the kernel limits the number of processes of a child and its descendants."""

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from ade_keeper import proc
from ade_keeper.groups import PREFIX, Group, remove_abandoned
from tests.work.supervised import (
    SHORT,
    Said,
    all_gone,
    each_level,
    needs_bubblewrap,
    needs_groups,
    run,
    token,
    wait_for,
    witness,
)
from work.processes import groups, supervise, usage

pytestmark = pytest.mark.once

WANTED = 200


@pytest.fixture
def nobody_counts(monkeypatch):
    monkeypatch.setattr(usage, "LOOK_SECONDS", 3600)


@pytest.fixture
def folder(tmp_path):
    """A folder that looks like a control group."""
    (tmp_path / "group").mkdir()
    return tmp_path / "group"


@needs_groups
@each_level
def test_a_child_cannot_have_more_processes_than_its_limit(tmp_path, sandbox, nobody_counts):
    name, said = token(), Said()
    limits = replace(SHORT, tasks=16)

    with supervise.spawn(
        witness("multiply", WANTED, name), cwd=tmp_path, sandbox=sandbox, limits=limits, on_output=said
    ) as child:
        while not said:
            assert child.poll(5) is None, child.ended

    assert 16 <= said.json < 16 + groups.MARGIN
    assert all_gone(name)


@needs_groups
@needs_bubblewrap
@pytest.mark.parametrize("network", [False, True], ids=["without-network", "with-network"])
def test_a_child_in_a_sandbox_can_write_no_group(tmp_path, network):
    paths = [f"{groups.folder()}/cgroup.procs", f"{groups.folder()}/made", "/sys/fs/cgroup/made"]

    _, said = run(["touch", *paths], tmp_path, sandbox="bubblewrap", network=network)

    assert "written" not in said.json.values()


@needs_groups
def test_a_group_goes_with_its_child(tmp_path):
    said = Said()

    with supervise.spawn(witness("sleep"), cwd=tmp_path, sandbox="limits", on_output=said) as child:
        wait_for("ready", child, said)
        memberships = Path(f"/proc/{child.process_id.pid}/cgroup").read_text()
        (name,) = set(re.findall(rf"/({PREFIX}\d+-\d+)$", memberships, re.MULTILINE))
        stood = name in os.listdir(groups.folder())

    assert stood
    assert name not in os.listdir(groups.folder())


def test_a_child_starts_where_its_group_cannot_be_made(tmp_path, monkeypatch):
    monkeypatch.setattr(groups, "folder", lambda: str(tmp_path / "missing"))

    ended = supervise.run(["/bin/true"], cwd=tmp_path)

    assert ended.returncode == 0


def test_groups_of_killed_keepers_are_removed(folder):
    mine = Path(Group(str(folder)).path)
    of_the_dead = folder / f"{PREFIX}{os.getpid()}-{proc.process(os.getpid()).start_ticks - 1}"
    of_others = folder / "system.slice"
    of_the_dead.mkdir()
    of_others.mkdir()

    remove_abandoned(str(folder))

    assert sorted(folder.iterdir()) == sorted([mine, of_others])


V1 = "31 26 0:28 {root} {point} rw,relatime shared:9 - cgroup cgroup rw,pids\n"
V2 = "29 26 0:26 {root} {point} rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
OTHERS = "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n30 26 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"


@pytest.mark.parametrize(
    ("root", "membership", "place"),
    [
        ("/", "/", ""),
        ("/", "/system.slice/ade.service", "/system.slice/ade.service"),
        ("/docker/12", "/docker/12/a", "/a"),
    ],
)
def test_groups_of_version_1_stand_below_ours(root, membership, place):
    mounts = OTHERS + V1.format(root=root, point="/sys/fs/cgroup/pids")

    found = groups.find_candidates(mounts, f"9:cpu:/elsewhere\n8:pids:{membership}\n0::/elsewhere\n")

    assert found == [f"/sys/fs/cgroup/pids{place}"]


def test_groups_of_version_2_stand_where_processes_are_counted(folder):
    service = folder / "ade.service"
    (service / "worker").mkdir(parents=True)
    (service / "cgroup.subtree_control").write_text("cpu memory pids\n")
    (service / "worker" / "cgroup.subtree_control").write_text("\n")
    mounts = OTHERS + V2.format(root="/", point=folder)

    found = groups.find_candidates(mounts, "0::/ade.service/worker\n")

    assert found == [str(service)]


def test_no_group_is_made_where_nobody_counts_processes(folder):
    (folder / "cgroup.subtree_control").write_text("cpu memory\n")

    assert groups.find_candidates(OTHERS + V2.format(root="/", point=folder), "0::/\n") == []
    assert groups.find_candidates(OTHERS, "0::/\n") == []
