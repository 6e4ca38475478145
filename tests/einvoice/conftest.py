import pytest

from ade_extractor import limits


@pytest.fixture(autouse=True)
def unlimited(monkeypatch):
    """Do not limit the processor time of the tests' own process, as reading a PDF does in a child."""
    monkeypatch.setattr(limits, "_limit_cpu", lambda seconds: None)
