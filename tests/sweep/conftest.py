import pytest

from tests.engines import Witness, create_site
from tests.feeds.servers import server  # noqa: F401  # pytest finds fixtures by their names here


@pytest.fixture
def site(programs, settings, tmp_path):
    """An installation with real engines and a witness of them; its configuration has no build yet."""
    settings.VAR_DIR = tmp_path / "var"
    witness = Witness()
    yield create_site(programs, witness)
    witness.end()
