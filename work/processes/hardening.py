"""Finds security weaknesses of this machine. Every worker logs them at its start and records them in its row."""

import os

from django.core.management.base import CommandError

from work.processes import groups, seccomp, supervise

NO_SANDBOX, ROOT = "no_sandbox", "root"
SAID = {
    NO_SANDBOX: "Configurations run without a sandbox: they can use the network, and read everything that the user of"
    " ADE can read, including its secret key and the files of all workspaces.",
    ROOT: "It runs as root: a program that escapes the sandbox controls the machine.",
}
ADVICE = {
    NO_SANDBOX: "Install bubblewrap (`bwrap`), and allow it to create user namespaces. Until then, run only"
    " configurations that you trust.",
    ROOT: "Run ADE as a separate user.",
}


def require_sandbox() -> None:
    """Raise CommandError if the sandbox is weaker than ADE_SANDBOX requires, because then no program could run."""
    try:
        supervise.level()
    except supervise.CannotStart as error:
        raise CommandError(str(error)) from error


def weaknesses() -> list[str]:
    return [
        *([NO_SANDBOX] if supervise.policy == "off" or supervise.sandbox_level() == "limits" else []),
        *([ROOT] if os.geteuid() == 0 else []),
    ]


def unenforced_limits() -> list[str]:
    """Return the limits that the kernel of this machine does not enforce."""
    limits = []
    if os.geteuid() == 0 and groups.folder() is None:
        limits.append("the processes of a run are only counted twice a second: root has no control groups here")
    if seccomp.program() is None:
        limits.append(f"system calls are not filtered on {os.uname().machine}")
    if not os.path.exists("/proc/self/task/self/children") and not os.path.exists("/proc/thread-self/children"):
        limits.append("the kernel does not list the children of a process (CONFIG_PROC_CHILDREN): checks take longer")
    return limits
