"""What a worker does about engines and their directories from time to time."""

from runs import engines, workplaces


def retire_engines(_owner: str = "") -> int:
    """End the warm engines that no run has needed for a while, and all when memory is short."""
    engines.POOL.retire(everything=engines.memory_is_short())
    return 0


def tidy(_owner: str = "") -> int:
    """Remove the directories of engines whose worker has died."""
    workplaces.sweep()
    return 0
