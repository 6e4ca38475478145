"""Security weaknesses of this machine. They are shown at start, and every worker records them in its row."""

import os

from django.core.management.base import CommandError

from work import supervise
from work.children import groups, seccomp

NO_SANDBOX, ROOT = "no_sandbox", "root"
SAID = {
    NO_SANDBOX: "No sandbox stands around programs of configurations: they have the network, and they read what the"
    " user of ADE may read, its secret key and all files of all workspaces included.",
    ROOT: "It runs as root: what breaks out of a sandbox owns the machine.",
}
ADVICE = {
    NO_SANDBOX: "Install bubblewrap (`bwrap`), and allow it to make user namespaces. Until then run only what you"
    " trust.",
    ROOT: "Run ADE as a user of its own.",
}


def require_sandbox() -> None:
    """Raise CommandError if the sandbox is weaker than ADE_SANDBOX requires, because no program could be run."""
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
    found = []
    if os.geteuid() == 0 and groups.folder() is None:
        found.append("the number of processes of a run is only counted twice a second: root has no control groups here")
    if seccomp.program() is None:
        found.append(f"system calls are not filtered on {os.uname().machine}")
    if not os.path.exists("/proc/self/task/self/children") and not os.path.exists("/proc/thread-self/children"):
        found.append("the kernel does not list the children of a process (CONFIG_PROC_CHILDREN): looking takes longer")
    return found
