"""Becomes another program, which dies with the process that started this one.

Usage: python -m config.launch PARENT_PID COMMAND [ARGUMENT…]

It is a separate program because preexec_fn, the usual way, may deadlock in a process with threads.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(parent: int, command: list[str]) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # If the parent died before prctl was called, the signal will never come.
    if os.getppid() != parent:
        sys.exit("config.launch: the process that started this one has ended.")
    os.execvp(command[0], command)  # noqa: S606 - arguments, not shell text


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
