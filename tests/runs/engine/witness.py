"""A configuration that behaves badly on request: each line of the document is a deed, `verb` or `verb:argument`.

Only its text is used: it becomes the `main.py` of an environment. Nobody else may import it, and who does ends.
"""

import atexit
import contextlib
import ctypes
import gc
import json
import os
import random
import resource
import signal
import socket
import sys
import tempfile
import threading
import time

from ade_engine import Context, Rejected, step

if not os.path.exists(os.path.join(sys.prefix, "ade.json")):
    os._exit(66)

IMPORTED_BY = os.getpid()
# As some libraries do; it is remembered.
tempfile.gettempdir()
SLEEP_SECONDS = 60
seen: list[str] = []


@step
def read(context: Context) -> None:
    context.data["deeds"] = [line.partition(":")[::2] for line in context.document.text.splitlines()]


@step
def act(context: Context) -> None:
    for verb, argument in context.data["deeds"]:
        globals()[f"do_{verb}"](context, argument)


@step
def close(context: Context) -> None:
    if "say_closing" in context.data:
        do_say(context, "closing")


def do_say_closing(context, argument):
    context.data["say_closing"] = True


def do_field(context, argument):
    name, _, value = argument.partition("=")
    context.field(name, value)


def do_say(context, argument):
    sys.stdout.write(f"{argument}\n")


def do_log(context, argument):
    context.log(argument)


def do_log_many(context, argument):
    count, _, size = argument.partition("x")
    for number in range(int(count)):
        context.log(f"{number} ".ljust(int(size or 10), "."))


def do_log_long(context, argument):
    context.log("z" * int(argument))


def do_field_large(context, argument):
    context.field("large", "z" * int(argument))


def do_fields(context, argument):
    for number in range(int(argument)):
        context.field("a", number)


def do_artifact(context, argument):
    name, _, content = argument.partition("=")
    context.artifact(name, content)


def do_name(context, argument):
    """The name of this process and of all that it forks."""
    with open("/proc/self/comm", "w") as file:
        file.write(argument)


# How it ends.


def do_raise(context, argument):
    raise ValueError(argument)


def do_raise_once(context, argument):
    if context.attempt == 1:
        raise ValueError(argument)


def do_reject(context, argument):
    raise Rejected(argument)


def do_exit(context, argument):
    sys.exit(int(argument))


def do_os_exit(context, argument):
    os._exit(int(argument))


def do_segv(context, argument):
    ctypes.string_at(0)


def do_kill(context, argument):
    os.kill(os.getpid(), int(argument))


def do_sleep(context, argument):
    time.sleep(float(argument))


def do_hang(context, argument):
    time.sleep(SLEEP_SECONDS)


def do_stubborn(context, argument):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def do_stop(context, argument):
    os.kill(os.getpid(), signal.SIGSTOP)


def do_thread(context, argument):
    threading.Thread(target=time.sleep, args=[SLEEP_SECONDS]).start()


def do_atexit(context, argument):
    atexit.register(time.sleep, SLEEP_SECONDS)


# What it leaves.


def do_fork(context, argument):
    if os.fork() == 0:
        do_stubborn(context, "")
        time.sleep(SLEEP_SECONDS)
        os._exit(0)


def do_setsid(context, argument):
    if os.fork() == 0:
        os.setsid()
        do_stubborn(context, "")
        time.sleep(SLEEP_SECONDS)
        os._exit(0)


def do_double(context, argument):
    if os.fork() == 0:
        os.setsid()
        do_fork(context, "")
        os._exit(0)
    os.wait()


def do_return_twice(context, argument):
    """As a program does that forgets that it has forked."""
    os.fork()


# What it takes.


def do_bomb(context, argument):
    for _ in range(int(argument)):
        do_fork(context, "")


def do_memory(context, argument):
    context.data["held"] = bytearray(int(argument))


def do_cpu(context, argument):
    until = time.process_time() + float(argument)
    while time.process_time() < until:
        pass


def do_limit(context, argument):
    """A lower one than it was given."""
    name, _, value = argument.partition("=")
    resource.setrlimit(getattr(resource, name), (int(value), int(value) + 1))


def do_open_files(context, argument):
    context.data["open"] = [open(os.devnull) for _ in range(int(argument))]  # noqa: SIM115  # all at once


def do_file(context, argument):
    with open("large", "wb", buffering=0) as file:
        for _ in range(int(argument) >> 20):
            file.write(bytes(1 << 20))


# What it says.


def do_spam(context, argument):
    chunk = b"x" * (1 << 20)
    for _ in range(int(argument) >> 20):
        os.write(1, chunk)


def do_long_line(context, argument):
    os.write(1, b"y" * int(argument) + b"\n")


def do_binary(context, argument):
    os.write(1, b"caf\xc3\xa9 \xff\xfe nul\0nul \x1b[31mred\x1b[0m\n10%\r20%\r100%\r\nno end")


def do_close(context, argument):
    for each in map(int, argument.split(",")):
        os.close(each)


def do_close_events(context, argument):
    os.close(context._channel._descriptor)


def do_event(context, argument):
    write_event(context, argument.encode().decode("unicode_escape").encode("latin-1") + b"\n")


def do_garbage(context, argument):
    write_event(context, b'\n[1]\n"text"\n{"kind": 7}\n{"kind": ["log"]}\n{"kind": "field"}\nnot json\n\xff\xfe\0\n')
    write_event(context, b'{"kind": "__class__"}\n{"kind": "log", "step": 1, "level": [], "message": {}}\n')


def do_events(context, argument):
    """So many times the same."""
    count, _, line = argument.partition(" ")
    for _ in range(int(count) // 100):
        write_event(context, (line.encode() + b"\n") * 100)


def write_event(context, data):
    while data:
        data = data[os.write(context._channel._descriptor, data) :]


# What it makes: below `artifacts`, without asking.


def made(name):
    os.makedirs("artifacts", exist_ok=True)
    return os.path.join(os.fsencode("artifacts"), name if isinstance(name, bytes) else os.fsencode(name))


def do_symlink(context, argument):
    name, _, target = argument.partition("=")
    os.symlink(target, made(name))


def do_replace_artifacts(context, argument):
    os.symlink(argument, "artifacts")


def do_swap_directory(context, argument):
    here = os.getcwd()
    os.rename(here, f"{here}-moved")
    os.symlink(argument, here)


def do_move_directory(context, argument):
    os.rename(os.getcwd(), f"{os.getcwd()}-moved")


def do_hardlink(context, argument):
    os.link("input.json", made(argument))


def do_fifo(context, argument):
    os.mkfifo(made(argument))


def do_socket(context, argument):
    socket.socket(socket.AF_UNIX).bind(made(argument).decode())


def do_device(context, argument):
    os.mknod(made(argument), 0o600 | 0o020000, os.makedev(1, 5))


def do_sparse(context, argument):
    name, _, size = argument.partition("=")
    with open(made(name), "wb") as file:
        file.truncate(int(size))


def do_many_files(context, argument):
    for number in range(int(argument)):
        open(made(f"{number:06}"), "wb").close()


def do_bad_name(context, argument):
    open(made(argument.encode().decode("unicode_escape").encode("latin-1")), "wb").close()


def do_deep(context, argument):
    """Folders in folders, deeper than any path is long."""
    os.makedirs("artifacts" if not argument.endswith("!") else "deep", exist_ok=True)
    home = os.open(".", os.O_RDONLY)
    os.chdir("artifacts" if not argument.endswith("!") else "deep")
    for _ in range(int(argument.rstrip("!"))):
        os.mkdir("d")
        os.chdir("d")
    os.fchdir(home)


def do_many_scratch(context, argument):
    for number in range(int(argument)):
        open(os.path.join(os.environ["TMPDIR"], f"{number}"), "wb").close()


def do_fifo_here(context, argument):
    os.mkfifo(argument)


def do_locked(context, argument):
    """A folder that its owner may not look into, unless he is root."""
    os.makedirs("locked/inside")
    open("locked/inside/file", "w").close()
    os.chmod("locked/inside", 0)
    os.chmod("locked", 0)


# What it sees, and what it leaves to others.


def do_facts(context, argument):
    descriptors = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            descriptors[name] = os.readlink(f"/proc/self/fd/{name}")
        except FileNotFoundError:
            continue  # the one that listed them
    facts = {
        "pid": os.getpid(),
        "imported_by": IMPORTED_BY,
        "seen": list(seen),
        "random": random.random(),
        "environ": dict(os.environ),
        "cwd": os.getcwd(),
        "here": sorted(os.listdir(".")),
        "beside": sorted(os.listdir("..")),
        "scratch": sorted(os.listdir(os.environ["TMPDIR"])),
        "temporary": tempfile.gettempdir(),
        "shared_memory": sorted(os.listdir("/dev/shm")),
        "descriptors": descriptors,
        "event_descriptor": context._channel._descriptor,
        "stdin": sys.stdin.read(),
        "signals": [str(signal.getsignal(number)) for number in (signal.SIGTERM, signal.SIGXFSZ, signal.SIGPIPE)],
        "gc": gc.isenabled(),
        "umask": os.umask(0o077),
        "arguments": sys.argv,
        "path": sys.path,
        "modules": sorted(name for name in sys.modules if "." not in name),
    }
    context.field("facts", facts)


def do_log_name(context, argument):
    context.field("name", context.document.name)


def do_litter(context, argument):
    """Changes all that a program can change of where it runs."""
    seen.append(argument)
    os.environ["LITTER"] = argument
    random.seed(7)
    os.umask(0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for folder in (".", os.environ["TMPDIR"], tempfile.gettempdir()):
        do_litter_in(context, folder)
    os.chdir("/")


def do_litter_in(context, argument):
    name = os.path.join(argument, f"litter-{os.getpid()}-{random.random()}")
    if os.access(argument, os.W_OK):
        with open(name, "w") as file:
            file.write("litter")
        os.makedirs(f"{name}-folder/below")


def do_meddle(context, argument):
    """The memory of which other processes may be written?"""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if int(pid) != os.getpid():
            with (
                contextlib.suppress(OSError),
                open(f"/proc/{pid}/cmdline") as command,
                open(f"/proc/{pid}/mem", "r+b"),
            ):
                found.append(command.read())
    with open("/proc/self/mem", "r+b"):
        context.field("meddled", found)


def do_write(context, argument):
    """Which of these may be written?"""
    answers = {}
    for path in argument.split(","):
        try:
            with open(path, "ab"):
                answers[path] = "written"
        except OSError as error:
            answers[path] = error.strerror
    context.field("written", answers)


def do_look(context, argument):
    """Which of these are there to be seen?"""
    answers = {}
    for path in argument.split(","):
        try:
            answers[path] = sorted(os.listdir(path)) if os.path.isdir(path) else os.path.getsize(path)
        except OSError as error:
            answers[path] = error.strerror
    context.field("looked", answers)


def do_trap(context, argument):
    """Where somebody cleans up after it, it puts a link to what is not its own."""
    os.rmdir("../.tmp")
    os.symlink(argument, "../.tmp")


def do_connect(context, argument):
    try:
        socket.create_connection(("127.0.0.1", int(argument)), timeout=2).close()
        context.field("connected", "connected")
    except OSError as error:
        context.field("connected", error.strerror)


def do_stamp(context, argument):
    """Begin and end by a clock that all processes share, while it holds on for a while."""
    path, _, seconds = argument.partition("=")
    with open(path, "a") as file:
        file.write(json.dumps(["begin", context.document.id, os.getpid(), time.monotonic()]) + "\n")
    until = time.monotonic() + float(seconds)
    while time.monotonic() < until:
        time.sleep(0.02)
        with open(path, "a") as file:
            file.write(json.dumps(["alive", context.document.id, os.getpid(), time.monotonic()]) + "\n")
