"""Puts a child and everything it forks into a control group of the kernel.

The group limits the number of processes and threads, so that the machine stays usable during a fork bomb until the
child is killed. Control groups v1 and v2 use the same files for this limit.
"""

import contextlib
import os
from typing import Self

from ade_keeper import proc

PREFIX = "ade-"


class Group:
    """The control group of one guard, which uses it for one child after another."""

    def __init__(self, folder: str) -> None:
        me = proc.process(os.getpid())
        self.path = os.path.join(folder, f"{PREFIX}{os.getpid()}-{me.start_ticks if me else 0}")
        with contextlib.suppress(FileExistsError):
            os.mkdir(self.path)

    @classmethod
    def of(cls, order: dict[str, str | int] | None) -> Self | None:
        """Make the group that `order` describes. Return None without an order, or if the kernel refuses the group.

        Running without a group is acceptable, because the worker also counts processes itself.
        """
        if order is None:
            return None
        try:
            group = cls(str(order["folder"]))
            group.limit(int(order["tasks"]))
        except OSError:
            return None
        return group

    def limit(self, tasks: int) -> None:
        """Set the limit. If the group already exceeds it, all processes keep running, but none can fork."""
        self._write("pids.max", str(tasks))

    def join(self) -> None:
        self._write("cgroup.procs", "0")

    def remove(self) -> None:
        # A process that survived even SIGKILL keeps the group from being removed.
        with contextlib.suppress(OSError):
            os.rmdir(self.path)

    def _write(self, name: str, value: str) -> None:
        with open(os.path.join(self.path, name), "w") as file:
            file.write(value)


def remove_abandoned(folder: str) -> None:
    """Remove the groups of guards that are gone. Groups that still contain processes stay."""
    for name in os.listdir(folder):
        pid, _, ticks = name.removeprefix(PREFIX).partition("-")
        if not name.startswith(PREFIX) or not pid.isdigit():
            continue
        guard = proc.process(int(pid))
        if guard is None or str(guard.start_ticks) != ticks:
            with contextlib.suppress(OSError):
                os.rmdir(os.path.join(folder, name))
