"""A program that behaves badly on request: `python -I -S -c SOURCE MODE [ARGUMENT...]`, with this file as SOURCE."""

import json
import os
import signal
import sys
import time


def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def sleep(*_):
    say("ready", os.getpid())
    time.sleep(600)


def stubborn(*_):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sleep()


def polite(*_):
    def leave(*_):
        say("leaving")
        sys.exit(7)

    signal.signal(signal.SIGTERM, leave)
    sleep()


def spam(size, *_):
    chunk = b"x" * (1 << 20)
    for _ in range(int(size) >> 20):
        os.write(1, chunk)


def burst(size, *_):
    """Write all bytes at once into an enlarged pipe."""
    import fcntl  # noqa: PLC0415  # the import is slow and only for this mode

    fcntl.fcntl(1, fcntl.F_SETPIPE_SZ, int(size))
    os.write(1, b"x" * (int(size) - 4096))


def chatter(*_):
    while True:
        os.write(1, b"and so on\n" * 1000)


def binary(*_):
    os.write(1, b"caf\xc3\xa9 \xff\xfe nul\0nul \x1b[31mred\x1b[0m\n10%\r20%\r100%\r\nno end")
    os.write(2, b"beside it\n")


def write(text, *_):
    os.write(1, text.encode().decode("unicode_escape").encode("latin-1"))


def drip(*_):
    say("early")
    time.sleep(600)


def closefd(*_):
    os.close(1)
    os.close(2)
    time.sleep(0.3)
    sys.exit(4)


def close_and_sleep(*_):
    say("ready")
    os.close(1)
    os.close(2)
    time.sleep(600)


def meddle(*_):
    """What of the machine's own can be changed: modes of devices, and files of the kernel that are of no process."""
    changed = []
    # Its own are a folder, /dev/shm, and terminals, /dev/pts.
    for path in (f"/dev/{name}" for name in os.listdir("/dev") if name not in ("shm", "pts")):
        try:
            if not os.path.islink(path):
                os.chmod(path, os.stat(path).st_mode)
                changed.append(path)
        except OSError:
            pass
    for at, folders, files in os.walk("/proc"):
        if at == "/proc":
            folders[:] = [each for each in folders if not each.isdigit() and each not in ("self", "thread-self")]
        for path in (os.path.join(at, name) for name in files):
            try:
                os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
                changed.append(path)
            except OSError:
                pass
    with open("/dev/null", "w") as null:
        null.write("still there")
    say(json.dumps(changed))


def multiply(wanted, *_):
    """Fork until the kernel refuses, or until this many processes exist."""
    forked = 0
    try:
        while forked < int(wanted):
            if os.fork() == 0:
                time.sleep(600)
            forked += 1
    except BlockingIOError:
        say(forked)
    time.sleep(600)


def fork(then="sleep", *_):
    """Fork a child in the same session; `then` is what the parent does."""
    if os.fork() == 0:
        stubborn()
    finish(then)


def setsid(then="sleep", *_):
    if os.fork() == 0:
        os.setsid()
        stubborn()
    finish(then)


def double(then="sleep", *_):
    """Fork twice like a daemon, and clear the environment."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            with open("/proc/self/cmdline") as file:
                python = file.read().split("\0")[:5]
            arguments = [*python, "stubborn", *sys.argv[3:]]
            os.execve(sys.executable, arguments, {})  # noqa: S606  # as a daemon would
        os._exit(0)
    os.wait()
    finish(then)


def orphan(then="sleep", *_):
    """Fork a grandchild in the same session whose parent ends."""
    if os.fork() == 0:
        if os.fork() == 0:
            stubborn()
        os._exit(0)
    os.wait()
    finish(then)


def heir(then="sleep", *_):
    """Fork a child in a new session as soon as it is asked to end, and stay."""

    def bear(*_):
        if os.fork() == 0:
            os.setsid()
            time.sleep(600)

    signal.signal(signal.SIGTERM, bear)
    say("ready")
    while then == "sleep":
        time.sleep(600)


def bomb(count, *_):
    """Fork this many children; stop at the first failure."""
    made = 0
    try:
        for _ in range(int(count)):
            if os.fork() == 0:
                time.sleep(600)
            made += 1
    except OSError as error:
        say("refused", error.errno)
    say("made", made)


def finish(then):
    say("forked")
    if then == "sleep":
        time.sleep(600)


def memory(size, *_):
    held = bytearray(int(size))
    say("have", len(held))


def burn(*_):
    while True:
        pass


def open_files(count, *_):
    held = []
    try:
        for _ in range(int(count)):
            held.append(open(os.devnull))  # noqa: SIM115  # all at the same time
    except OSError as error:
        say("refused", error.errno)
    say("opened", len(held))


def big_file(size, *_):
    with open("big", "wb", buffering=0) as file:
        for _ in range(int(size) >> 20):
            file.write(b"x" * (1 << 20))


def env(*_):
    say(json.dumps(dict(os.environ)))


def fds(*_):
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            found[int(name)] = os.readlink(f"/proc/self/fd/{name}")
        except FileNotFoundError:
            continue  # the descriptor of this listing
    say(json.dumps(found))


def arguments(*given):
    say(json.dumps(given))


def stdin(*_):
    say(json.dumps(sys.stdin.read()))


def facts(*_):
    import ctypes  # noqa: PLC0415  # the import is slow and only for this mode
    import resource  # noqa: PLC0415

    death = ctypes.c_int()
    ctypes.CDLL(None).prctl(2, ctypes.byref(death))
    with open("/proc/self/status") as file:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in file)
    with open("/proc/self/oom_score_adj") as file:
        score = int(file.read())
    mask = os.umask(0)
    say(
        json.dumps(
            {
                "pid": os.getpid(),
                "session": os.getsid(0),
                "death_signal": death.value,
                "no_new_privs": status["NoNewPrivs"].strip(),
                "ignored": status["SigIgn"].strip(),
                "blocked": status["SigBlk"].strip(),
                "capabilities": status["CapEff"].strip(),
                "oom_score": score,
                "umask": mask,
                "cwd": os.getcwd(),
                "namespaces": {
                    name: os.readlink(f"/proc/self/ns/{name}") for name in ("ipc", "mnt", "net", "pid", "uts")
                },
                "core": resource.getrlimit(resource.RLIMIT_CORE),
                "processes": resource.getrlimit(resource.RLIMIT_NPROC),
                "shown": sorted(int(name) for name in os.listdir("/proc") if name.isdigit()),
            }
        )
    )


def touch(*paths):
    """Report which of these paths can be written to."""
    answers = {}
    for path in paths:
        try:
            with open(path, "ab"):
                answers[path] = "written"
        except OSError as error:
            answers[path] = error.strerror
    say(json.dumps(answers))


def show(*paths):
    say(
        json.dumps(
            {path: os.path.exists(path) and bool(os.path.isdir(path) or os.path.getsize(path)) for path in paths}
        )
    )


def connect(port, *_):
    import socket  # noqa: PLC0415  # the import is slow and only for this mode

    try:
        socket.create_connection(("127.0.0.1", int(port)), timeout=2).close()
        say("connected")
    except OSError as error:
        say("refused", error.errno)


def connect_to(path, *_):
    import socket  # noqa: PLC0415  # the import is slow and only for this mode

    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)
        say("connected")
    except OSError as error:
        say("refused", error.errno)


def lock(*_):
    import multiprocessing  # noqa: PLC0415  # the import is slow and only for this mode

    with multiprocessing.Lock():
        say("locked")


def events(*lines):
    with open(int(os.environ["ADE_EVENTS_FD"]), "w") as file:
        for line in lines:
            file.write(line + "\n")


def event_flood(count, *_):
    with open(int(os.environ["ADE_EVENTS_FD"]), "w") as file:
        for number in range(int(count)):
            file.write(json.dumps({"number": number, "filling": "x" * 1000}) + "\n")


def code(number, *_):
    sys.exit(int(number))


def crash(name, *_):
    os.kill(os.getpid(), getattr(signal, name))


def write_to(descriptor, *_):
    os.write(int(descriptor), b"hello")


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
