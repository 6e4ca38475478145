import pytest

from documents.embedding import pack
from documents.search import matrix
from documents.search.scope import Scope
from documents.vectors import Model
from tests.factories import DocumentChunkFactory, DocumentFactory

MODEL = Model("of this test", 2)
EAST, NORTH_EAST = pack([1.0, 0.0]), pack([0.8, 0.6])

pytestmark = pytest.mark.django_db


@pytest.fixture
def document():
    matrix.cache.clear()
    yield DocumentFactory()
    matrix.cache.clear()


def add(document, id, vector):
    return DocumentChunkFactory(pk=id, position=id, document=document, embedding=vector, embedding_model=MODEL.name)


def nearest(document, vector=EAST):
    return [id for id, _ in matrix.nearest(vector, MODEL, Scope((document.workspace_id,)), 10)]


def test_what_is_committed_later_with_an_earlier_id_is_found(document):
    """When two processes publish at the same time, the one that received its IDs first may commit last."""
    add(document, 1020, EAST)
    assert nearest(document) == [1020]

    add(document, 1010, EAST)

    assert nearest(document) == [1010, 1020]


def test_what_came_and_what_went_is_known(document):
    first = add(document, 1010, EAST)
    add(document, 1020, NORTH_EAST)
    assert nearest(document) == [1010, 1020]

    first.delete()
    add(document, 1030, EAST)

    assert nearest(document) == [1030, 1020]
