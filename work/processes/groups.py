"""Finds the folder in which control groups for child processes can be created, if this machine allows it."""

import os
from functools import cache
from typing import NamedTuple

from ade_keeper.groups import Group, remove_abandoned

# Tasks that the group allows beyond the child's limit: some for bubblewrap, and some so that the worker's own count,
# which enforces the limit, can see that the child exceeds it.
MARGIN = 32


class Mount(NamedTuple):
    version: int
    # The part of the hierarchy that is mounted, and the mount point.
    root: str
    point: str


def order(tasks: int | None) -> dict[str, str | int] | None:
    """Return the guard's instructions for the child's control group."""
    place = folder()
    return None if place is None or tasks is None else {"folder": place, "tasks": tasks + MARGIN}


@cache
def folder() -> str | None:
    """Return the folder, or None if there is none. Try each candidate once by creating and removing a group."""
    with open("/proc/self/mountinfo") as mounts, open("/proc/self/cgroup") as memberships:
        candidates = find_candidates(mounts.read(), memberships.read())
    for candidate in candidates:
        try:
            remove_abandoned(candidate)
            group = Group(candidate)
            group.limit(1)
            group.remove()
        except OSError:
            continue
        return candidate
    return None


def find_candidates(mounts: str, memberships: str) -> list[str]:
    """Return the folders whose groups count processes.

    The arguments are the texts of /proc/self/mountinfo and /proc/self/cgroup.
    """
    process_mounts = []
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        root, point = before.split(" ")[3:5]
        if kind == "cgroup2":
            process_mounts.append(Mount(2, root, point))
        elif kind == "cgroup" and "pids" in options.split(","):
            process_mounts.append(Mount(1, root, point))
    folders = []
    for mount in process_mounts:
        for line in memberships.splitlines():
            number, controllers, path = line.split(":", 2)
            if mount.version == 1 and "pids" in controllers.split(","):
                folders.append(_place(mount, path))
            elif mount.version == 2 and number == "0":
                # Try our own group and its parent. A group that contains processes cannot have groups with controllers
                # below it, so usually the groups of children become siblings of ours.
                own = _place(mount, path)
                folders += [each for each in (own, os.path.dirname(own)) if "pids" in _counted_below(each)]
    return folders


def _place(mount: Mount, path: str) -> str:
    return os.path.normpath(os.path.join(mount.point, os.path.relpath(path, mount.root)))


def _counted_below(folder: str) -> list[str]:
    try:
        with open(os.path.join(folder, "cgroup.subtree_control")) as file:
            return file.read().split()
    except OSError:
        return []
