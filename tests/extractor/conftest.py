import pytest

from tests.extractor.extracting import READERS


@pytest.fixture(autouse=True, scope="package")
def readers(tmp_path_factory):
    """What reads is kept warm for the tests of this folder; others count processes."""
    READERS.folder = tmp_path_factory.getbasetemp()
    yield
    READERS.close()
