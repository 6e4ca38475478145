import random

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction

from ade_embedder import DIMENSIONS, MODEL
from documents import indexing, vectors
from documents.embedding import pack
from documents.models import Document, DocumentChunk
from documents.models.columns import as_text, from_text
from documents.search import search
from documents.vectors import Model
from tests.documents.searched import published
from tests.factories import DocumentChunkFactory, DocumentFactory, WorkspaceFactory, force_status, write
from work import clock
from workspaces.models import Workspace

LOCAL = Model(MODEL, DIMENSIONS)
AWKWARD = [0.0, -0.0, 1.0, -1.0, 1e-38, 3.4028234e38, 1 / 3, 0.1, 16777217.0, 1.17549435e-38, 123456.789, -2.5e-7]


def some_vector(dimensions=DIMENSIONS, seed=1):
    chance = random.Random(seed)
    return pack([chance.uniform(-1, 1) for _ in range(dimensions)])


def column_type():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_typeof(embedding)::text FROM document_chunks"
            " UNION SELECT pg_typeof(embedding)::text FROM documents"
        )
        return {kind for (kind,) in cursor.fetchall()}


@pytest.fixture
def bytes_only(transactional_db):
    """Keep vectors as bytes, as on a server without pgvector."""
    vectors.keep_as_bytes()
    yield
    vectors.keep_as_vectors()
    vectors.make_index(LOCAL)


@pytest.mark.parametrize("seed", range(20))
def test_the_text_of_a_vector_has_all_of_it(seed):
    vector = some_vector(seed=seed)

    assert from_text(as_text(vector)) == vector


@pytest.mark.django_db
def test_bytes_come_back_as_they_were_stored():
    vector = pack(AWKWARD)
    chunk = DocumentChunkFactory(embedding=vector, embedding_model="awkward")
    Document.objects.filter(pk=chunk.document_id).update(embedding=memoryview(vector))

    assert DocumentChunk.objects.get(pk=chunk.pk).embedding == vector
    assert list(DocumentChunk.objects.values_list("embedding", flat=True)) == [vector]
    assert Document.objects.get(pk=chunk.document_id).embedding == vector
    assert DocumentChunkFactory().embedding is None


@pytest.mark.django_db
def test_many_are_written_at_once():
    document = DocumentChunkFactory().document
    made = [some_vector(seed=n) for n in range(600)]
    DocumentChunk.objects.bulk_create(
        DocumentChunk(document=document, workspace=document.workspace, position=n + 1, text="x", embedding=vector)
        for n, vector in enumerate(made)
    )

    assert list(document.chunks.filter(position__gt=0).order_by("position").values_list("embedding", flat=True)) == made


# Migrations


# PostgreSQL with and without the extension


@pytest.mark.only_on("postgresql")
def test_here_vectors_are_of_pgvectors_type_and_have_an_index(db):
    DocumentChunkFactory()

    assert column_type() == {"vector"}
    assert vectors.indexes()[LOCAL.index] is True


@pytest.mark.only_on("postgresql")
def test_without_pgvector_all_is_the_same_but_slower(bytes_only):
    document = published(WorkspaceFactory(), "Cats like fish", "Apples are green", name="letter")
    chunk = document.chunks.get(position=1)

    assert column_type() == {"bytea"}
    assert isinstance(chunk.embedding, bytes)
    assert search(Workspace.objects.all(), "fruit", by="meaning").hits[0].chunk_id == chunk.pk
    vectors.keep_as_vectors()
    assert column_type() == {"vector"}
    assert document.chunks.get(position=1).embedding == chunk.embedding
    assert search(Workspace.objects.all(), "fruit", by="meaning").hits[0].chunk_id == chunk.pk


@pytest.mark.only_on("postgresql")
def test_constraints_stay_when_the_type_changes(bytes_only):
    document = force_status(DocumentFactory(), "processed")
    for change in (lambda: None, vectors.keep_as_vectors, vectors.keep_as_bytes):
        change()

        with pytest.raises(IntegrityError, match="document_purged_holds_nothing"), transaction.atomic():
            write(document, purged_at=clock.now(), file="", embedding=some_vector())


@pytest.mark.only_on("postgresql")
def test_who_may_not_make_the_extension_keeps_bytes(bytes_only):
    with connection.cursor() as cursor:
        cursor.execute("DROP EXTENSION vector")
        cursor.execute("CREATE ROLE nobody_special")
        try:
            cursor.execute("SET ROLE nobody_special")
            assert vectors.make_extension() is False
        finally:
            cursor.execute("RESET ROLE")
            cursor.execute("DROP ROLE nobody_special")

    assert vectors.make_extension() is True
    assert vectors.make_extension() is True


# Indexes


@pytest.mark.only_on("postgresql")
def test_the_nearest_are_looked_up_in_the_index(transactional_db):
    with connection.cursor() as cursor:
        cursor.execute("SET enable_seqscan = off")
        cursor.execute("SET enable_bitmapscan = off")
        cursor.execute("SET enable_sort = off")
        nearest = f"ORDER BY {LOCAL.expression} <=> %s::vector LIMIT 5"
        cursor.execute(
            f"EXPLAIN SELECT id FROM document_chunks WHERE embedding_model = %s {nearest}",  # noqa: S608  # no user input
            [MODEL, as_text(some_vector())],
        )
        plan = "\n".join(row[0] for row in cursor.fetchall())

    assert LOCAL.index in plan


@pytest.mark.only_on("postgresql")
@pytest.mark.parametrize(("dimensions", "kind"), [(1536, "vector"), (2000, "vector"), (3072, "halfvec")])
def test_another_model_gets_an_index_of_its_own(transactional_db, dimensions, kind):
    model = Model('text-embedding\'s "own" %s', dimensions)
    DocumentChunkFactory(embedding=some_vector(dimensions), embedding_model=model.name)

    assert vectors.make_index_concurrently(model) is True
    assert vectors.make_index_concurrently(model) is False

    assert model.kind == kind
    assert vectors.indexes() == {LOCAL.index: True, model.index: True}
    with connection.cursor() as cursor:
        cursor.execute(f"DROP INDEX {model.index}")


@pytest.mark.only_on("postgresql")
def test_what_is_too_long_for_an_index_has_none(transactional_db):
    assert vectors.make_index_concurrently(Model("long", 5000)) is False


@pytest.mark.only_on("postgresql")
def test_an_index_whose_maker_has_died_is_made_again(transactional_db):
    model = Model("unlucky", 4)
    DocumentChunkFactory(embedding=pack([1, 2, 3]), embedding_model=model.name)
    with pytest.raises(DatabaseError):
        vectors.make_index_concurrently(model)
    assert vectors.indexes()[model.index] is False
    DocumentChunk.objects.update(embedding=pack([1, 2, 3, 4]))

    assert vectors.make_index_concurrently(model) is True

    assert vectors.indexes()[model.index] is True
    with connection.cursor() as cursor:
        cursor.execute(f"DROP INDEX {model.index}")


@pytest.mark.only_on("postgresql")
def test_while_somebody_makes_an_index_nobody_else_does(threads, transactional_db):
    model = Model("wanted by two", 4)
    with vectors._one_at_a_time() as is_first:
        assert is_first
        assert threads.start(lambda: vectors.make_index_concurrently(model)).answer() is False

    assert model.index not in vectors.indexes()


@pytest.mark.only_on("postgresql")
def test_a_worker_makes_the_index_of_the_model_of_today(transactional_db, monkeypatch):
    monkeypatch.setattr("documents.embedding.model", lambda: "new")
    monkeypatch.setattr("documents.embedding.dimensions", lambda: 4)
    model = Model("new", 4)

    indexing.index_vectors()

    assert vectors.indexes()[model.index] is True
    with connection.cursor() as cursor:
        cursor.execute(f"DROP INDEX {model.index}")


@pytest.mark.only_on("postgresql")
def test_a_worker_leaves_it_to_a_person_when_that_takes_long(transactional_db, monkeypatch):
    monkeypatch.setattr("documents.embedding.model", lambda: "new")
    monkeypatch.setattr("documents.embedding.dimensions", lambda: 4)
    monkeypatch.setattr(indexing, "FEW_CHUNKS", 1)
    for _ in range(2):
        DocumentChunkFactory(embedding=pack([1, 2, 3, 4]), embedding_model="new")

    indexing.index_vectors()

    assert Model("new", 4).index not in vectors.indexes()


@pytest.mark.only_on("sqlite")
def test_elsewhere_there_is_nothing_to_make(db):
    assert indexing.index_vectors() == 0
