"""To which workspace an event belongs: it names its subject, and the subject leads there."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from itertools import islice
from threading import Lock

from work.kinds import all_kinds
from work.tail import Seen

# From a row of this kind. All others belong to the installation: workers, jobs, feeds.
PATHS = {
    "run": "workspace_id",
    "build": "configuration__workspace_id",
    "document": "workspace_id",
    "job": "document__workspace_id",
    "stage": "job__document__workspace_id",
}
# How somebody is told of all this is not told.
LEFT_OUT = frozenset({"delivery"})
# A row never moves to another workspace, so what is known stays true.
MOST_KNOWN = 20_000
# Of parameters of one statement.
BATCH = 500

Subject = tuple[str, int]


class Workspaces:
    """What a process knows of them. Used by any thread."""

    def __init__(self) -> None:
        self._known: OrderedDict[Subject, int | None] = OrderedDict()
        self._lock = Lock()

    def of(self, events: Iterable[Seen]) -> Mapping[Subject, int]:
        """Of these events, those that belong to a workspace. One statement for each kind and batch that is new."""
        wanted = {(event.subject_kind, event.subject_id) for event in events if event.subject_kind in PATHS}
        with self._lock:
            found = {subject: self._known[subject] for subject in wanted if subject in self._known}
            for subject in found:
                self._known.move_to_end(subject)
        if missing := wanted - found.keys():
            # Outside of the lock: whoever has asked before is not kept waiting by a database that does not answer.
            asked = _ask(missing)
            self._remember(asked)
            found |= asked
        return {subject: workspace for subject, workspace in found.items() if workspace is not None}

    def _remember(self, found: Mapping[Subject, int | None]) -> None:
        with self._lock:
            self._known.update(found)
            while len(self._known) > MOST_KNOWN:
                self._known.popitem(last=False)


def _ask(subjects: Iterable[Subject]) -> dict[Subject, int | None]:
    # A row that is gone is remembered as one of nobody.
    found: dict[Subject, int | None] = dict.fromkeys(subjects)
    for kind in all_kinds():
        ids = iter([id for name, id in found if name == kind.name])
        while batch := list(islice(ids, BATCH)):
            rows = kind.moves.rows.filter(pk__in=batch).values_list("pk", PATHS[kind.name])
            found |= {(kind.name, pk): workspace for pk, workspace in rows}
    return found
