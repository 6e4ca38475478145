"""Isolates a child process: by its environment variables, and by bubblewrap where the machine has it."""

import os
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

# Names of environment variables with secrets. Prefixed names such as REPLICA_DATABASE_URL match too.
_SECRET = re.compile(r"DJANGO_.*|.*(DATABASE_URL|SECRET_KEY|PGPASSWORD)")
# The directories in which distributions keep programs. A child without network sees only these, SETTINGS and its own
# paths.
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store")
# Configuration of libraries, time zone, locales and certificates. It contains no keys and no settings of programs.
SETTINGS: tuple[str, ...] = (
    "/etc/alternatives",
    "/etc/fonts",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.alias",
    "/etc/localtime",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/protocols",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
    "/etc/timezone",
    # Numeric libraries look here for the number of cores.
    "/sys/devices/system/cpu",
)
# Even without capabilities, a process with root's user ID may write to these, and so could make the kernel start a
# program outside the sandbox.
KERNEL_SWITCHES = (
    *("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi", "/proc/scsi"),
    *("/proc/driver", "/proc/dynamic_debug", "/proc/mtrr", "/proc/pressure"),
)
TEMPORARY = "/tmp"  # noqa: S108  # the name inside the sandbox
# The child's PATH if this process has no PATH.
PATH = "/usr/local/bin:/usr/bin:/bin"
# The kernel follows at most this many symbolic links in one path.
MOST_LINKS = 40


def environment(cwd: str, scratch: str, extra: Mapping[str, str]) -> dict[str, str]:
    """Build the child's environment from an allow-list: only PATH and LANG are inherited."""
    for name in extra:
        if _SECRET.fullmatch(name):
            raise ValueError(
                f"The environment of a child process must not have secrets such as {name}. Pass only what it needs, "
                "and secrets in a file or on a descriptor."
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
class SandboxPaths:
    program: str
    cwd: str
    scratch: str
    network: bool
    writable: Sequence[str]
    readable: Sequence[str]
    hidden: Sequence[str]
    # Whether the program becomes the first process of the sandbox. bubblewrap's own first process would outlive the
    # program, and the program could change it.
    is_first: bool = False


def wrap(argv: Sequence[str], paths: SandboxPaths, *, status: int, seccomp: int | None) -> list[str]:
    """Return the command that runs `argv` inside bubblewrap."""
    # A later bind covers an earlier one, so hide paths before showing paths inside them.
    command = [
        *(bubblewrap() or "bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"),
        *("--json-status-fd", str(status)),
    ]
    command += ["--as-pid-1"] if paths.is_first else []
    command += ["--share-net"] if paths.network else []
    command += ["--seccomp", str(seccomp)] if seccomp is not None else []
    mounted = [*paths.readable, *paths.writable, paths.cwd]
    visible = ["/"] if paths.network else [*SYSTEM, *SETTINGS, *installation_of(paths.program), *paths.readable]
    command += _show(visible)
    program, links = paths.program, 0
    while os.path.islink(program) and links < MOST_LINKS:
        target = os.readlink(program)
        if not any(_is_below(program, each) for each in (*visible, *mounted)):
            command += ["--symlink", target, program]
        program = os.path.normpath(os.path.join(os.path.dirname(program), target))
        links += 1
    command += ["--proc", "/proc", "--dev", "/dev"]
    for path in KERNEL_SWITCHES:
        command += ["--ro-bind-try", path, path]
    # Put /dev/shm into the child's own folder on disk. A tmpfs would use memory that no limit counts, and its files
    # would stay for the next process of the same sandbox.
    command += ["--bind", paths.scratch, "/dev/shm"]  # noqa: S108  # the path inside the sandbox
    if not paths.network and not any(_is_below(path, TEMPORARY) for path in (*visible, *mounted)):
        command += ["--bind", paths.scratch, TEMPORARY]
    # Hide the hidden paths that are inside visible or writable paths. Readable and writable paths inside hidden ones
    # are shown again.
    writable = [*paths.writable, paths.cwd]
    above = [path for path in writable if any(_is_below(each, path) for each in paths.hidden)]
    hidden = [path for path in paths.hidden if any(_is_below(path, each) for each in (*visible, *above))]
    for path in above:
        command += ["--bind", path, path]
    for path in hidden:
        command += ["--tmpfs", path] if os.path.isdir(path) else ["--ro-bind", "/dev/null", path]
    for path in paths.readable:
        if any(_is_below(path, each) for each in hidden):
            command += ["--ro-bind", path, path]
    for path in writable:
        command += ["--bind", path, path] if path not in above else []
    # Make all in-memory file systems read-only.
    for path in ("/", "/dev", *filter(os.path.isdir, hidden)):
        command += ["--remount-ro", path]
    return [*command, "--chdir", paths.cwd, "--", *argv]


def installation_of(program: str) -> list[str]:
    """Return the paths that belong to a program: for a Python interpreter its environment and library, for any other
    program only the file itself.
    """
    home = Path(program).parent.parent
    directories = [str(home)] if (home / "pyvenv.cfg").is_file() else []
    try:
        lines = (home / "pyvenv.cfg").read_text("utf-8").splitlines()
    except (OSError, ValueError):
        lines = []
    pairs = [line.partition("=") for line in lines]
    # `home` in pyvenv.cfg leads to the base interpreter of a virtual environment.
    pythons = [f"{value.strip()}/python" for name, _, value in pairs if name.strip() == "home"]
    # Include both the paths in use and the real paths, because version directories are often links.
    for python in (*pythons, os.path.realpath(program)):
        base = Path(python).parent.parent
        if any(base.glob("lib/python3*/os.py")):
            directories += [str(base), os.path.realpath(base)]
    return list(dict.fromkeys(directories)) or [program]


def _show(paths: Iterable[str]) -> list[str]:
    command: list[str] = []
    shown: list[str] = []
    for path in dict.fromkeys(paths):
        if any(_is_below(path, each) for each in shown):
            continue
        if os.path.islink(path) and path in SYSTEM:
            command += ["--symlink", os.readlink(path), path]
        elif os.path.exists(path):
            command += ["--ro-bind", path, path]
            shown.append(path)
    return command


def _is_below(path: str, folder: str) -> bool:
    """Return whether the path is the folder or inside it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def bubblewrap() -> str | None:
    return shutil.which("bwrap")
