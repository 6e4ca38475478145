"""Finds the workspace of an event through the event's subject."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from itertools import islice
from threading import Lock

from work.tail import EventRow
from work.work_types import all_work_types

# For each kind of row, the lookup of its workspace. Other kinds (workers, jobs, feeds) belong to the installation.
PATHS = {
    "run": "workspace_id",
    "build": "configuration__workspace_id",
    "document": "workspace_id",
    "job": "document__workspace_id",
    "stage": "job__document__workspace_id",
}
# Kinds whose events are left out: a delivery reports an event of another row, so its own events are not reported.
LEFT_OUT = frozenset({"delivery"})
# Size of the cache. Its entries never become stale, because rows never move to another workspace.
MOST_KNOWN = 20_000
# IDs per query.
BATCH = 500

Subject = tuple[str, int]


class Workspaces:
    """A thread-safe cache of the workspaces of subjects."""

    def __init__(self) -> None:
        self._known: OrderedDict[Subject, int | None] = OrderedDict()
        self._lock = Lock()

    def of(self, events: Iterable[EventRow]) -> Mapping[Subject, int]:
        """Return the workspace of each subject of these events, except subjects without a workspace. Costs one query
        per kind and batch of subjects that are not cached.
        """
        subjects = {(event.subject_kind, event.subject_id) for event in events if event.subject_kind in PATHS}
        with self._lock:
            known = {subject: self._known[subject] for subject in subjects if subject in self._known}
            for subject in known:
                self._known.move_to_end(subject)
        if missing := subjects - known.keys():
            # Query without holding the lock, so that an unresponsive database does not block threads whose subjects are
            # cached.
            rows = _load(missing)
            with self._lock:
                self._known.update(rows)
                while len(self._known) > MOST_KNOWN:
                    self._known.popitem(last=False)
            known |= rows
        return {subject: workspace for subject, workspace in known.items() if workspace is not None}


def _load(subjects: Iterable[Subject]) -> dict[Subject, int | None]:
    # A deleted row is cached like a row without a workspace.
    workspaces: dict[Subject, int | None] = dict.fromkeys(subjects)
    for kind in all_work_types():
        ids = iter([id for name, id in workspaces if name == kind.name])
        while batch := list(islice(ids, BATCH)):
            rows = kind.states.rows.filter(pk__in=batch).values_list("pk", PATHS[kind.name])
            workspaces |= {(kind.name, pk): workspace for pk, workspace in rows}
    return workspaces
