"""Keeps child processes that have a document open, because opening it again costs as much as reading a segment."""

import json
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any, Unpack
from uuid import uuid4

from django.conf import settings

import ade_extractor
from documents.children import EXTRACTOR, POOL, VARIABLES, Options
from work.processes.scratch import workplace
from work.processes.supervise import Child, Ended, Limits, OnEvent, OnOutput

LOOK_SECONDS = 0.05
# Time limit for a whole session. Each segment also has its own limit, and a session ends sooner if its lease expires.
LONGEST_SECONDS = 3600
TIMED_OUT = "timed_out"
# Short, because the output of a process that has timed out no longer matters.
GRACE_SECONDS = 0.1


class ReaderSession:
    """A child process with an open document, used by one thread at a time.

    Close the session when anything goes wrong; a fresh process then finds out what is wrong.
    """

    def __init__(self, job_id: int, directory: Path, spawn: Callable[..., Child], stack: ExitStack) -> None:
        self.job_id, self.directory = job_id, directory
        self._spawn, self._stack = spawn, stack
        self._child: Child | None = None
        self._done = False
        # Ignore events before the first order.
        self._on_event: OnEvent = lambda event: None

    def run(self, arguments: Sequence[str], **options: Unpack[Options]) -> Ended | None:
        """Send one order to the process. Return None once it is done, or how the process ended. Raises CannotStart."""
        self._done, self._on_event = False, options["on_event"]
        child = self._child = self._child or self._start(options["limits"], options["on_output"])
        options["on_start"](child)
        # If the process has closed its input, it has ended, and `_wait` reports that.
        with suppress(BrokenPipeError):
            os.write(self._orders, json.dumps(list(arguments)).encode() + b"\n")
        seconds = options["limits"].wall_seconds or LONGEST_SECONDS
        return self._wait(child, options["stop"], monotonic() + seconds)

    def is_alive(self) -> bool:
        """Return whether the process still runs. If it stays idle until its last lease expires, its guard ends it."""
        return self._child is not None and self._child.poll(0) is None

    def close(self) -> None:
        self._stack.close()

    def _start(self, limits: Limits, on_output: OnOutput) -> Child:
        reading, self._orders = os.pipe()
        self._stack.callback(os.close, self._orders)
        within = replace(limits, wall_seconds=LONGEST_SECONDS, cpu_seconds=LONGEST_SECONDS)
        try:
            child = self._spawn(
                cwd=self.directory, stdin=reading, limits=within, on_event=self._handle, on_output=on_output
            )
        finally:
            os.close(reading)
        self._stack.enter_context(child)
        return child

    def _wait(self, child: Child, stop: Callable[[], str | None], until: float) -> Ended | None:
        look_at = 0.0
        while not self._done:
            if (now := monotonic()) >= look_at:
                look_at = now + LOOK_SECONDS
                if reason := stop():
                    child.stop(reason)
                elif now >= until:
                    child.stop(TIMED_OUT, GRACE_SECONDS)
            if ended := child.poll(LOOK_SECONDS):
                is_late = ended.stop_reason == TIMED_OUT
                return replace(ended, reason="timed_out", stop_reason=None) if is_late else ended
        return None

    def _handle(self, event: dict[str, Any]) -> None:
        if event.get("kind") == ade_extractor.DONE:
            self._done = True
        else:
            self._on_event(event)


class ReaderSessions:
    """The idle sessions of this worker, shared by all of its threads."""

    def __init__(self) -> None:
        self._idle: list[ReaderSession] = []
        self._lock = threading.Lock()

    def take(self, job_id: int) -> ReaderSession | None:
        """Return a session that has the document of this job open, or None."""
        with self._lock:
            session = next((each for each in self._idle if each.job_id == job_id and each.is_alive()), None)
            if session is not None:
                self._idle.remove(session)
        return session

    def begin(self, job_id: int, stop: Callable[[], str | None]) -> ReaderSession | None:
        """Start a session, or return None if no warm program is available. Raises Interrupted."""
        warm = POOL.take(EXTRACTOR, stop)
        if warm is None:
            return None
        with ExitStack() as stack:
            stack.callback(POOL.give_back, warm)
            directory = stack.enter_context(workplace(warm.folder, uuid4().hex))

            def spawn(**options: Any) -> Child:
                return warm.fork_server.spawn(env=VARIABLES, **options)

            return ReaderSession(job_id, directory, spawn, stack.pop_all())

    def give_back(self, session: ReaderSession) -> None:
        with self._lock:
            self._idle.append(session)
        self.retire()

    def retire(self) -> None:
        """Close sessions whose process has ended. Keep only the latest others, at most one per worker thread."""
        with self._lock:
            alive = [each for each in self._idle if each.is_alive()]
            kept = alive[max(0, len(alive) - settings.ADE_STAGE_CONCURRENCY) :]
            surplus, self._idle = [each for each in self._idle if each not in kept], kept
        for each in surplus:
            each.close()

    def close(self) -> None:
        with self._lock:
            surplus, self._idle = self._idle, []
        for each in surplus:
            each.close()


SESSIONS = ReaderSessions()
