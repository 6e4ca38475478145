import pytest

from tests.extractor.extracting import READERS


@pytest.fixture(autouse=True, scope="package")
def readers(tmp_path_factory):
    """Keep warm readers for the tests of this folder only; other tests count processes."""
    READERS.folder = tmp_path_factory.getbasetemp()
    yield
    READERS.close()
