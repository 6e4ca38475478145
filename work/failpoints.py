"""Named points at which a test makes this process die, stop, sleep or fail.

Without ADE_FAILPOINTS each point costs only one check. An example of its value:

ADE_FAILPOINTS="run.claimed:kill9,run.finish.before_commit:raise*3,lease.before_renew:sleep:2"
"""

import os
import re
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import OperationalError, transaction

ACTIONS = ("kill9", "raise", "stop", "sleep:SECONDS")
_ACTION = re.compile(r"kill9|raise|stop|sleep:(\d+\.?\d*|\.\d+)")
# Every kind of work has these four points.
KIND_POINTS = ("claim.selected", "claimed", "finish.before_commit", "finish.after_commit")
KINDS = ("run", "build", "job", "stage", "job_run", "delivery")
OTHER_POINTS = (
    "run.create.counted",
    "run.created",
    "run.document_followed",
    "run.refused",
    "slot.decided",
    "slot.inserted",
    "cancel.read",
    "lease.before_renew",
    "recover.selected",
    "recover.before_commit",
    "artifact.written",
    "build.exited",
    "lesson.before_commit",
    "sender_update.before_commit",
    "retyping.before_commit",
    "job.analysed",
    "job.embedded",
    "engine.before_spawn",
    "engine.spawned",
    "engine.exited",
    "upload.blob_written",
    "upload.before_commit",
    "retention.selected",
    "retention.purged",
    "ingestion.fetched",
    "ingestion.stored",
    "brief.published",
    "clustering.embedded",
    "clustering.linked",
    "retention.articles.selected",
    "retention.articles.before_commit",
    "retention.clusters.before_commit",
    "retention.runs.before_commit",
    "retention.runs.pruned",
    "delivery.written",
    "delivery.sent",
)
KIND_NAMES = frozenset(f"{kind}.{point}" for kind in KINDS for point in KIND_POINTS)
# A slot of a schedule is claimed by being inserted, so it has no separate point.
NAMES = (KIND_NAMES - {"job_run.claimed"}) | frozenset(OTHER_POINTS)


class Armed:
    def __init__(self, action: str, times: int | None) -> None:
        self.action = action
        self.left = times

    def fire(self, name: str) -> None:
        if self.left is not None:
            if self.left == 0:
                return
            self.left -= 1
        if self.action == "kill9":
            os.kill(os.getpid(), signal.SIGKILL)
        elif self.action == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        elif self.action == "raise":
            raise OperationalError(f"failpoint {name}")
        else:
            time.sleep(float(self.action.removeprefix("sleep:")))


_armed: dict[str, Armed] = {}


def hit(name: str) -> None:
    if _armed and (point := _armed.get(name)):
        point.fire(name)


@contextmanager
def inside(name: str) -> Iterator[None]:
    """Mark a point between the last statement and the commit. If the point is armed, open a transaction, because
    otherwise each statement may be its own transaction.
    """
    if name not in _armed:
        yield
        return
    with transaction.atomic():
        yield
        hit(name)


def arm(text: str, extra_names: Iterable[str] = ()) -> None:
    """Arm the points in `text`, which has the format of ADE_FAILPOINTS, and disarm all others."""
    _armed.clear()
    known = NAMES | frozenset(extra_names)
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, _, rest = part.partition(":")
        action, _, times = rest.partition("*")
        if name not in known or not _ACTION.fullmatch(action) or (times and not times.isdigit()):
            raise ImproperlyConfigured(
                f"ADE_FAILPOINTS has {part!r}. Use POINT:ACTION or POINT:ACTION*TIMES,"
                f" with an action of {', '.join(ACTIONS)} and a point of {', '.join(sorted(known))}."
            )
        _armed[name] = Armed(action, int(times) if times else None)


def arm_from_settings() -> None:
    if settings.ADE_FAILPOINTS and not settings.ADE_ALLOW_FAILPOINTS:
        message = "ADE_FAILPOINTS is set, but failpoints are for tests: ADE_ALLOW_FAILPOINTS is false."
        raise ImproperlyConfigured(message)
    arm(settings.ADE_FAILPOINTS)
