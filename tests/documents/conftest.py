import pytest

from documents import children
from documents.sessions import SESSIONS


@pytest.fixture(autouse=True, scope="module")
def children_end():
    """Others count the processes that this one has."""
    yield
    SESSIONS.close()
    children.POOL.close()
