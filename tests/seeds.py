"""Seeds for tests that try many random states."""

import pytest


def many_seeds(few, of):
    """Return seeds from 100 on: the first few run as long tests, the others in a soak only."""
    tiers = [pytest.mark.long] * few + [pytest.mark.soak] * (of - few)
    return [pytest.param(100 + n, marks=tier) for n, tier in enumerate(tiers)]
