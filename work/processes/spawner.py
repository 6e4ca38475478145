"""The launcher, one per worker process: it forks keepers, and kills the processes that a killed keeper leaves.

It has a single thread, so fork is safe here; in a worker's threads it could deadlock. `spawner_client.py` starts it.
"""

import gc
import os
import select
import signal
import socket
import sys
from typing import NoReturn

from ade_keeper import proc
from ade_keeper.keeper import SWEEP_SECONDS, Keeper, failure, receive


def serve(descriptor: int, worker: int) -> None:
    doorbell = socket.socket(fileno=descriptor)
    proc.prctl(proc.PR_SET_CHILD_SUBREAPER, 1)
    # A garbage collection in a keeper would copy all pages that it shares with the launcher.
    gc.freeze()
    gc.disable()
    watched = select.poll()
    watched.register(doorbell, select.POLLIN)
    parent = proc.pidfd_of_parent(worker)
    watched.register(parent, select.POLLIN)
    keepers: dict[int, int] = {}
    strays = False
    while True:
        ready = {each for each, _ in watched.poll(SWEEP_SECONDS * 1000 if strays else None)}
        if parent in ready:
            return
        for keeper in ready & keepers.keys():
            watched.unregister(keeper)
            os.close(keeper)
            # The descendants of a killed keeper are reparented to this process.
            strays |= os.waitpid(keepers.pop(keeper), 0)[1] != 0
        if descriptor in ready and (pid := _answer(doorbell)):
            pidfd = os.pidfd_open(pid)
            keepers[pidfd] = pid
            watched.register(pidfd, select.POLLIN)
        strays = strays and _end_strays(set(keepers.values()))


def _answer(doorbell: socket.socket) -> int | None:
    try:
        message, descriptors, _ = receive(doorbell, 1, 1)
    except ConnectionResetError:
        message = b""
    if not message:
        sys.exit()
    if not descriptors:
        return None  # out of descriptors: the caller sees its control socket close
    launcher = os.getpid()
    try:
        pid = os.fork()
        if pid == 0:
            _keep(doorbell, descriptors[0], launcher)
        return pid
    except OSError as error:
        os.write(descriptors[0], failure("fork", error))
        return None
    finally:
        os.close(descriptors[0])


def _end_strays(keepers: set[int]) -> bool:
    """Kill all children of the launcher except the keepers. Return True while there are any."""
    me = os.getpid()
    strays = [each for each in proc.processes() if each.parent == me and each.pid not in keepers]
    for each in strays:
        proc.send_exactly(each, signal.SIGKILL)
        os.waitpid(each.pid, os.WNOHANG)
    return bool(strays)


def _keep(doorbell: socket.socket, control: int, launcher: int) -> NoReturn:
    code = 1
    try:
        doorbell.close()
        os.setsid()
        gc.enable()
        code = Keeper(socket.socket(fileno=control), launcher).run()
    except Exception:
        # Report it here. In the launcher's loop it would look like an error of the launcher.
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(code)
