from threading import Event

import pytest

from documents import children, kinds
from documents.copies import COPIES
from documents.sessions import SESSIONS
from tests.factories import W1
from work.claims import Holdings
from work.slots import Bell, Slot


@pytest.fixture(autouse=True, scope="module")
def children_end():
    """Others count the processes that this one has."""
    yield
    SESSIONS.close()
    children.POOL.close()


@pytest.fixture
def places(settings, tmp_path):
    """Where this installation keeps its files."""
    settings.VAR_DIR = tmp_path / "var"
    settings.MEDIA_ROOT = settings.VAR_DIR / "media"
    settings.VAR_DIR.mkdir()
    # Ids come again in tests.
    SESSIONS.close()
    COPIES.retire(everything=True)
    return settings.VAR_DIR


@pytest.fixture
def slot(places, transactional_db):
    """As a worker has it for stages."""
    return Slot(
        kinds.STAGE,
        0,
        owner=W1,
        bell=Bell(),
        holdings=Holdings(),
        stopping=Event(),
        after=lambda kind: None,
        contended=lambda kind, met: None,
    )
