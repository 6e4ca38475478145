"""What a worker does about engines, their directories and their files from time to time."""

import re
from collections.abc import Iterator

from documents.chores import Sweeper, keys_below
from runs import engines
from runs.models import Artifact, Run
from runs.workplaces import root
from work import warm
from work.workplaces import sweep

# As `artifacts.store` makes them.
KEY = re.compile(r"runs/[0-9]{1,18}/[0-9]{1,18}/[0-9]{4,}")


def retire_engines(_owner: str = "") -> int:
    """End the warm engines that no run has needed for a while, and all when memory is short."""
    engines.POOL.retire(everything=warm.memory_is_short())
    return 0


def tidy(_owner: str = "") -> int:
    """Remove the directories of engines whose worker has died."""
    sweep(root())
    return 0


def sweep_artifacts(_owner: str = "") -> int:
    """Remove the files of runs that have ended without keeping them."""
    _artifacts.sweep()
    return 0


def _attempts() -> Iterator[str | None]:
    return keys_below("runs", KEY)


def _kept(keys: list[str]) -> set[str]:
    runs = {key: int(key.split("/")[1]) for key in keys}
    # Asked first: one that ends after this has its rows before it.
    live = set(Run.objects.live().filter(pk__in=set(runs.values())).values_list("pk", flat=True))
    rows = Artifact.objects.filter(run__in=set(runs.values()), file__in=keys).values_list("file", flat=True)
    return {key for key in keys if runs[key] in live} | set(rows)


_artifacts = Sweeper(_attempts, _kept)
