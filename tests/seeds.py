"""Seeds for tests that try something in many random states."""

import pytest


def many_seeds(few, of):
    """Seeds from 100 on: the first few are long, and the rest of them are for a soak."""
    tiers = [pytest.mark.long] * few + [pytest.mark.soak] * (of - few)
    return [pytest.param(100 + n, marks=tier) for n, tier in enumerate(tiers)]
