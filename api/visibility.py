"""Decides which rows a user may know about if only kind and ID of the rows are given, as in workers and events."""

from collections import defaultdict
from collections.abc import Iterable, Set
from typing import Any

from api.subjects import Subject
from schedules.job_runs import JOB_RUN_STATES
from work.models import Worker
from work.work_types import all_work_types
from workspaces.models import User

# Kinds of work that belong to no workspace; every user may see the IDs.
SHARED = frozenset({JOB_RUN_STATES.kind})


def visible(user: User, subjects: Iterable[Subject], shared: Set[str] = SHARED) -> set[Subject]:
    """Return the rows whose IDs this user may know, with one query per kind."""
    ids_by_kind: dict[str, set[int]] = defaultdict(set)
    for kind, id in subjects:
        ids_by_kind[kind].add(id)
    known = {(kind, id) for kind in shared for id in ids_by_kind.pop(kind, ())}
    # `Any`, because models without a workspace have no `for_user`; their rows are left out.
    models: dict[str, Any] = {kind.name: kind.states.model for kind in all_work_types()}
    for kind, ids in ids_by_kind.items():
        if kind in models and hasattr(models[kind].objects, "for_user"):
            rows = models[kind].objects.for_user(user).filter(pk__in=ids)
            known |= {(kind, id) for id in rows.values_list("pk", flat=True)}
    return known


def doing(worker: Worker) -> list[Subject]:
    """Return the rows that a worker is working on. The worker stores them in the form "run 12"."""
    parts = [text.rpartition(" ") for text in worker.doing]
    return [(kind, int(id)) for kind, _, id in parts]
