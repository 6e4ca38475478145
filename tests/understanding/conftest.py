import pytest

from ade_extractor import limits
from tests.extractor.extracting import READERS


@pytest.fixture(autouse=True)
def no_limit_of_cpu(monkeypatch):
    """Readers limit the CPU time of their process. Some tests read in the process of pytest, which lives on."""
    monkeypatch.setattr(limits, "_limit_cpu", lambda seconds: None)


@pytest.fixture(autouse=True, scope="package")
def readers(tmp_path_factory):
    """Keep warm readers for the tests of this folder only; other tests count processes."""
    READERS.folder = tmp_path_factory.getbasetemp()
    yield
    READERS.close()
