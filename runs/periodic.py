"""Periodic tasks for engines, their directories and the files of runs."""

import re
from functools import partial

from documents.periodic import Sweeper, keys_below
from runs import engines
from runs.models import Artifact, Run
from runs.scratch import root
from work.processes import warm
from work.processes.scratch import sweep

# The form of the storage keys that `artifacts.store` makes.
KEY = re.compile(r"runs/[0-9]{1,18}/[0-9]{1,18}/[0-9]{4,}")


def retire_engines(_owner: str = "") -> int:
    """End warm engines that have been idle for a while, or all idle ones if memory is short."""
    engines.POOL.retire(everything=warm.memory_is_short())
    return 0


def look_at_engines(_owner: str = "") -> int:
    """End warm engines that are active without work: a configuration may have changed the process that its runs are
    forked from.
    """
    engines.POOL.look()
    return 0


def tidy(_owner: str = "") -> int:
    """Remove the directories that dead workers left for their engines."""
    sweep(root())
    return 0


def sweep_artifacts(_owner: str = "") -> int:
    """Remove stored files of runs that ended without recording them."""
    _artifacts.sweep()
    return 0


def _named(keys: list[str]) -> set[str]:
    runs = {key: int(key.split("/")[1]) for key in keys}
    # Query the live runs first: a run that ends after this has its rows by the time of the next query.
    live = set(Run.objects.live().filter(pk__in=set(runs.values())).values_list("pk", flat=True))
    rows = Artifact.objects.filter(run__in=set(runs.values()), file__in=keys).values_list("file", flat=True)
    return {key for key in keys if runs[key] in live} | set(rows)


_artifacts = Sweeper(partial(keys_below, "runs", KEY), _named)
