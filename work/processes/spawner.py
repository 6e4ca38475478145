"""The spawner, one per worker process: it forks guards, and kills the processes that a killed guard leaves behind.

It has a single thread, so it can fork safely. A fork in a worker with its threads could deadlock. `spawner_client.py`
starts the spawner.
"""

import gc
import os
import select
import signal
import socket
import sys
from typing import NoReturn

from ade_keeper import proc
from ade_keeper.guard import SWEEP_SECONDS, ProcessGuard, failure, receive


def serve(descriptor: int, worker: int) -> None:
    doorbell = socket.socket(fileno=descriptor)
    proc.prctl(proc.PR_SET_CHILD_SUBREAPER, 1)
    # A garbage collection in a guard would copy all pages that it shares with the spawner.
    gc.freeze()
    gc.disable()
    watched = select.poll()
    watched.register(doorbell, select.POLLIN)
    parent = proc.pidfd_of_parent(worker)
    watched.register(parent, select.POLLIN)
    guards: dict[int, int] = {}
    strays = False
    while True:
        ready = {each for each, _ in watched.poll(SWEEP_SECONDS * 1000 if strays else None)}
        if parent in ready:
            return
        for guard in ready & guards.keys():
            watched.unregister(guard)
            os.close(guard)
            # This process becomes the parent of a killed guard's descendants.
            strays |= os.waitpid(guards.pop(guard), 0)[1] != 0
        if descriptor in ready and (pid := _fork_guard(doorbell)):
            pidfd = os.pidfd_open(pid)
            guards[pidfd] = pid
            watched.register(pidfd, select.POLLIN)
        if strays:
            me = os.getpid()
            left = [each for each in proc.processes() if each.parent == me and each.pid not in guards.values()]
            for each in left:
                proc.send_exactly(each, signal.SIGKILL)
                os.waitpid(each.pid, os.WNOHANG)
            strays = bool(left)


def _fork_guard(doorbell: socket.socket) -> int | None:
    """Take a request, fork a guard and return its PID, or None if the fork failed. Exit if the worker is gone."""
    try:
        message, descriptors, _ = receive(doorbell, 1, 1)
    except ConnectionResetError:
        message = b""
    if not message:
        sys.exit()
    if not descriptors:
        return None  # out of descriptors: the caller sees its control socket close
    spawner = os.getpid()
    try:
        pid = os.fork()
        if pid == 0:
            _run_guard(doorbell, descriptors[0], spawner)
        return pid
    except OSError as error:
        os.write(descriptors[0], failure("fork", error))
        return None
    finally:
        os.close(descriptors[0])


def _run_guard(doorbell: socket.socket, control: int, spawner: int) -> NoReturn:
    code = 1
    try:
        doorbell.close()
        os.setsid()
        gc.enable()
        code = ProcessGuard(socket.socket(fileno=control), spawner).run()
    except Exception:
        # Report the error here. In the spawner's loop it would look like an error of the spawner.
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(code)
