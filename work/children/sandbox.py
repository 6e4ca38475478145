"""The walls around a child: what environment it may see, and bubblewrap where the machine has it."""

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# Unprefixed, and as the end of a longer name: REPLICA_DATABASE_URL.
_SECRET = re.compile(r"DJANGO_.*|.*(DATABASE_URL|SECRET_KEY|PGPASSWORD)")
# Here are the sockets of databases, containers and the system bus, which need no network to be reached.
SOCKETS = "/run"
# Whoever has the number of root may write these, also without a capability: to have a program of his started by the
# kernel, outside of any sandbox.
KERNEL_SWITCHES = ("/proc/sys", "/proc/sysrq-trigger")
# Where programs without a PATH of ours find theirs.
PATH = "/usr/local/bin:/usr/bin:/bin"


def environment(cwd: str, scratch: str, extra: Mapping[str, str]) -> dict[str, str]:
    """An allow-list: of our own environment only PATH and LANG pass."""
    for name in extra:
        if _SECRET.fullmatch(name):
            raise ValueError(
                f"expected an environment without secrets, found {name}: pass only what the child needs, "
                "and a secret it needs in a file or on a descriptor"
            )
    return {
        "PATH": os.environ.get("PATH", PATH),
        "LANG": os.environ.get("LANG", "C.UTF-8"),
        "HOME": cwd,
        "TMPDIR": scratch,
        "PYTHONUTF8": "1",
        "PYTHONUNBUFFERED": "1",
        "PYTHONNOUSERSITE": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONFAULTHANDLER": "1",
        **extra,
    }


@dataclass(frozen=True)
class Walls:
    cwd: str
    scratch: str
    network: bool
    writable: Sequence[str]
    readable: Sequence[str]
    hidden: Sequence[str]
    # Without a process of bubblewrap's own inside, which what is inside could change, and which outlives it.
    is_first: bool = False


def wrap(argv: Sequence[str], walls: Walls, *, status: int) -> list[str]:
    """The command inside bubblewrap. A later bind covers an earlier one, so hiding comes before showing."""
    command = [
        bubblewrap() or "bwrap",
        "--unshare-all",
        "--die-with-parent",
        "--new-session",
        "--cap-drop",
        "ALL",
    ]
    command += ["--as-pid-1"] if walls.is_first else []
    command += ["--json-status-fd", str(status), "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"]
    for path in KERNEL_SWITCHES:
        command += ["--ro-bind-try", path, path]
    # Shared memory and semaphores, on the child's own disk: a tmpfs would be memory that no limit counts.
    command += ["--bind", walls.scratch, "/dev/shm", "--remount-ro", "/dev"]  # noqa: S108  # the sandbox's own
    command += ["--share-net"] if walls.network else ["--tmpfs", SOCKETS]
    for path in walls.hidden:
        command += ["--tmpfs", path] if os.path.isdir(path) else ["--ro-bind", "/dev/null", path]
    for path in walls.readable:
        command += ["--ro-bind", path, path]
    for path in [*walls.writable, walls.cwd]:
        command += ["--bind", path, path]
    return [*command, "--chdir", walls.cwd, "--", *argv]


def bubblewrap() -> str | None:
    return shutil.which("bwrap")
