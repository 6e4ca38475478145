from threading import Event

import pytest

from documents import children, work_types
from documents.copies import COPIES
from documents.reader_sessions import SESSIONS
from tests.factories import W1, DocumentFactory
from work.claims import Holdings
from work.worker_thread import Bell, WorkerThread


@pytest.fixture(autouse=True, scope="module")
def children_end():
    """End the children: other tests count the processes of this one."""
    yield
    SESSIONS.close()
    children.POOL.close()


@pytest.fixture
def document(workspace):
    """A document that is not processed yet."""
    return DocumentFactory(workspace=workspace, name="invoice.pdf")


@pytest.fixture
def places(settings, tmp_path):
    """Put the files of the installation into the directory of the test."""
    settings.VAR_DIR = tmp_path / "var"
    settings.MEDIA_ROOT = settings.VAR_DIR / "media"
    settings.VAR_DIR.mkdir()
    # IDs repeat across tests.
    SESSIONS.close()
    COPIES.retire(everything=True)
    return settings.VAR_DIR


@pytest.fixture
def slot(places, transactional_db):
    """A slot for stages, as a worker has it."""
    return WorkerThread(
        work_types.STAGE,
        0,
        owner=W1,
        bell=Bell(),
        holdings=Holdings(),
        stopping=Event(),
        on_end=lambda kind: None,
        on_contention=lambda kind, met: None,
    )
