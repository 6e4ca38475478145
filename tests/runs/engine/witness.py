"""A configuration that behaves badly on request: each line of the document is a deed, `verb` or `verb:argument`.

Only its text is used: it becomes the `main.py` of an environment. A process outside an engine that imports it is
killed.
"""

import atexit
import contextlib
import ctypes
import gc
import json
import mmap
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
# As some libraries do at import; the result is cached.
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
    """Set the name of this process and of all processes that it forks."""
    with open("/proc/self/comm", "w") as file:
        file.write(argument)


# How the run ends.


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


# Processes that it leaves.


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
    """Behave like a program that forgets that it has forked."""
    os.fork()


# Resources that it uses.


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
    """Lower a limit of its own."""
    name, _, value = argument.partition("=")
    resource.setrlimit(getattr(resource, name), (int(value), int(value) + 1))


def do_open_files(context, argument):
    context.data["open"] = [open(os.devnull) for _ in range(int(argument))]  # noqa: SIM115  # all at the same time


def do_file(context, argument):
    with open("large", "wb", buffering=0) as file:
        for _ in range(int(argument) >> 20):
            file.write(bytes(1 << 20))


# Its output and its events.


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
    """Send the same event this many times."""
    count, _, line = argument.partition(" ")
    for _ in range(int(count) // 100):
        write_event(context, (line.encode() + b"\n") * 100)


def write_event(context, data):
    while data:
        data = data[os.write(context._channel._descriptor, data) :]


# Files in `artifacts` that it writes without the API.


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
    """Nest folders deeper than the longest possible path."""
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
    """Create a folder that its owner cannot read, unless the owner is root."""
    os.makedirs("locked/inside")
    open("locked/inside/file", "w").close()
    os.chmod("locked/inside", 0)
    os.chmod("locked", 0)


# Facts about its environment, and changes to it.


def do_facts(context, argument):
    descriptors = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            descriptors[name] = os.readlink(f"/proc/self/fd/{name}")
        except FileNotFoundError:
            continue  # the descriptor of this listing
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
    """Change everything that a program can change about its process."""
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
    """Report the processes whose memory it can write to."""
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


def do_settings(context, argument):
    """What the process that it was forked from has in /proc, before and after it writes this."""
    found = []
    for name in ("oom_score_adj", "coredump_filter", "autogroup"):
        with contextlib.suppress(OSError):
            with open(f"/proc/1/{name}") as file:
                found.append(file.read())
            if argument:
                with open(f"/proc/1/{name}", "w") as file:
                    file.write(argument)
    context.field("settings", found)


def do_write(context, argument):
    """Report which of these paths can be written to."""
    answers = {}
    for path in argument.split(","):
        try:
            with open(path, "ab"):
                answers[path] = "written"
        except OSError as error:
            answers[path] = error.strerror
    context.field("written", answers)


def do_look(context, argument):
    """Report which of these paths can be read."""
    answers = {}
    for path in argument.split(","):
        try:
            answers[path] = sorted(os.listdir(path)) if os.path.isdir(path) else os.path.getsize(path)
        except OSError as error:
            answers[path] = error.strerror
    context.field("looked", answers)


def do_trap(context, argument):
    """Replace a folder that ADE removes with a link to a path of another owner."""
    os.rmdir("../.tmp")
    os.symlink(argument, "../.tmp")


def do_connect(context, argument):
    try:
        socket.create_connection(("127.0.0.1", int(argument)), timeout=2).close()
        context.field("connected", "connected")
    except OSError as error:
        context.field("connected", error.strerror)


def do_stamp(context, argument):
    """Record the begin and the end of its work by a clock that all processes share, and hold on in between."""
    path, _, seconds = argument.partition("=")
    with open(path, "a") as file:
        file.write(json.dumps(["begin", context.document.id, os.getpid(), time.monotonic()]) + "\n")
    until = time.monotonic() + float(seconds)
    while time.monotonic() < until:
        time.sleep(0.02)
        with open(path, "a") as file:
            file.write(json.dumps(["alive", context.document.id, os.getpid(), time.monotonic()]) + "\n")


# Traces for the next run or for another workspace.


def _numbered(call, *arguments):
    """Make a system call by its number, because glibc has no function for some."""
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.syscall(call, *arguments)


def _places():
    """Return the writable mount points that the kernel reports."""
    found = []
    with open("/proc/self/mountinfo") as file:
        for line in file:
            words = line.split()
            kind = line.partition(" - ")[2].split()[0]
            if "rw" in words[5].split(",") and kind not in ("proc", "sysfs", "devpts", "mqueue"):
                found.append(words[4].encode().decode("unicode_escape"))
    return found


def do_leave(context, argument):
    """Leave a word in every place that a program can write to."""
    left = []
    for place in {"/tmp", "/dev/shm", "/var/tmp", "/run", "..", "../.tmp", *_places()}:
        with contextlib.suppress(OSError):
            with open(os.path.join(place, "left"), "w") as file:
                file.write(argument)
            left.append(place)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype = ctypes.c_void_p
    if (memory := libc.shmget(4711, 4096, 0o1600)) >= 0:
        ctypes.memmove(libc.shmat(memory, None, 0), argument.encode() + b"\0", len(argument) + 1)
        left.append("shared memory")
    left += [name for name in ("semget", "msgget") if getattr(libc, name)(4711, *[1, 0o1600][name == "msgget" :]) >= 0]
    if os.uname().machine == "x86_64":
        # These are mq_open(), and add_key() to the keyring of the user.
        left += ["queue"] if _numbered(240, b"left", os.O_CREAT | os.O_RDWR, 0o600, None) >= 0 else []
        word = argument.encode()
        left += ["key"] if _numbered(248, b"user", b"left", word, len(word), -4) >= 0 else []
    if os.fork() == 0:
        # A daemon that accepts connections from other runs.
        os.setsid()
        server = socket.socket(socket.AF_UNIX)
        server.bind("\0left")
        server.listen()
        time.sleep(SLEEP_SECONDS)
        os._exit(0)
    context.field("left", sorted(left))


def do_find(context, argument):
    """Search for the word that an earlier run has left."""
    found = []
    for place in {"/tmp", "/dev/shm", "/var/tmp", "/run", "..", "../.tmp", *_places()}:
        with contextlib.suppress(OSError), open(os.path.join(place, "left")) as file:
            found += [place] if argument in file.read() else []
    libc = ctypes.CDLL(None, use_errno=True)
    found += [name for name in ("shmget", "semget", "msgget") if _has(libc, name)]
    if os.uname().machine == "x86_64":
        found += ["queue"] if _numbered(240, b"left", os.O_RDWR, 0, None) >= 0 else []
        found += ["key"] if _numbered(249, b"user", b"left", None, -4) >= 0 else []
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
        connection.connect("\0left")
        found.append("daemon")
    context.field("found", found)


def _has(libc, name):
    arguments = {"shmget": (4711, 0, 0), "semget": (4711, 0, 0), "msgget": (4711, 0)}[name]
    return getattr(libc, name)(*arguments) >= 0


# Resources that it uses with many processes.


def do_family(context, argument):
    """Fork this many children that hold this many bytes each, all at the same time."""
    count, _, size = argument.partition("x")
    for _ in range(int(count)):
        if os.fork() == 0:
            held = bytearray(int(size))
            held[::4096] = b"x" * len(held[::4096])
            time.sleep(SLEEP_SECONDS)
    time.sleep(SLEEP_SECONDS)


def do_inherit(context, argument):
    """Fork this many children that share this process's memory without a copy."""
    count, _, size = argument.partition("x")
    held = bytearray(int(size))
    held[::4096] = b"x" * len(held[::4096])
    for _ in range(int(count)):
        if os.fork() == 0:
            time.sleep(SLEEP_SECONDS)
    # Long enough for the limit to be checked.
    time.sleep(2)
    context.field("held", len(held))


def do_multiply(context, argument):
    """Fork in every process, without end."""
    while True:
        with contextlib.suppress(OSError):
            os.fork()


def do_disk(context, argument):
    """Write many files; with `nameless`, delete each while it is open."""
    size, _, how = argument.partition("x")
    held = []
    for number in range(int(size) >> 20):
        file = open(f"{number}", "wb", buffering=0)  # noqa: SIM115  # kept open
        if how == "nameless":
            os.unlink(f"{number}")
        file.write(os.urandom(1 << 20))
        held.append(file)
        if how != "nameless":
            file.close()
    time.sleep(SLEEP_SECONDS)


def do_share_many(context, argument):
    """In so many processes, memory that stays although none of them has it mapped any more."""
    count, _, size = argument.partition("x")
    held = []
    for _ in range(int(count)):
        if os.fork() == 0:
            break
    for _ in range(int(size) >> 20):
        memory = mmap.mmap(-1, 1 << 20)
        memory[:] = b"x" * (1 << 20)
        memory.madvise(mmap.MADV_DONTNEED)
        held.append(memory)
    time.sleep(SLEEP_SECONDS)


def do_sockets(context, argument):
    """As many as it may have, full, and as large as they can be."""
    for _ in range(int(argument)):
        if os.fork() == 0:
            break
    held = [socket.socketpair() for _ in range(400)]
    for each in (end for pair in held for end in pair):
        each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 30)
        each.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                each.send(b"x" * 65536)
    time.sleep(SLEEP_SECONDS)


def do_sent(context, argument):
    """Files without a name, held only by a message that no process reads."""
    there, _here = held = socket.socketpair()
    for _ in range(int(argument) >> 24):
        with open("sent", "wb", buffering=0) as file:
            os.unlink("sent")
            file.write(os.urandom(1 << 24))
            socket.send_fds(there, [b"x"], [file.fileno()])
    time.sleep(SLEEP_SECONDS)
    del held


def do_mapped(context, argument):
    """Files without a name that are only mapped."""
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    for _ in range(int(argument) >> 24):
        with open("mapped", "w+b", buffering=0) as file:
            os.unlink("mapped")
            file.write(os.urandom(1 << 24))
            libc.mmap(None, 4096, mmap.PROT_READ, mmap.MAP_SHARED, file.fileno(), 0)
    time.sleep(SLEEP_SECONDS)


def do_mount(context, argument):
    """Mount in namespaces of its own, where mounting needs no privileges."""
    libc = ctypes.CDLL(None, use_errno=True)
    flags = 0x10000000 | 0x00020000
    if libc.unshare(flags) or libc.mount(b"tmpfs", b"/tmp", b"tmpfs", 0, b"size=20g"):
        raise OSError(ctypes.get_errno(), "not mounted")
