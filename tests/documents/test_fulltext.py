"""The full-text index stays in step with the chunks, whatever happens to them."""

import pytest
from django.core.management import call_command
from django.db import connection, transaction

from documents import fulltext
from documents.models import Document, DocumentChunk
from documents.search import search
from tests.breaches import breaches, execute
from tests.documents.searched import published
from tests.factories import DocumentChunkFactory, WorkspaceFactory
from workspaces.models import Workspace

APPLES = "The delivery of apples arrived on time."
CATS = "Cats like fish."


def found(text):
    return [hit.name for hit in search(Workspace.objects.all(), text, by="words").hits]


@pytest.mark.django_db
def test_what_is_published_anew_is_found_by_its_new_words_only(workspace):
    document = published(workspace, APPLES, name="letter")
    document.chunks.all().delete()
    DocumentChunkFactory(document=document, text=CATS)

    assert (found("apples"), found("cats")) == ([], ["letter"])


@pytest.mark.django_db
def test_a_chunk_that_is_saved_again_has_the_words_of_its_text(workspace):
    chunk = published(workspace, APPLES, name="letter").chunks.get()
    chunk.text = CATS
    chunk.save()

    assert (found("apples"), found("cats")) == ([], ["letter"])


@pytest.mark.django_db
def test_what_is_deleted_is_gone(workspace):
    published(workspace, APPLES, name="one")
    elsewhere = WorkspaceFactory()
    published(elsewhere, APPLES, name="other").delete()
    elsewhere.delete()

    assert found("apples") == ["one"]
    Document.objects.all().delete()
    assert found("apples") == []
    assert fulltext.has_index()


@pytest.mark.django_db(transaction=True)
def test_what_was_rolled_back_was_never_there(workspace):
    with pytest.raises(ZeroDivisionError):
        _publish_and_fail(workspace)

    assert found("apples") == []


def _publish_and_fail(workspace):
    with transaction.atomic():
        published(workspace, APPLES)
        assert found("apples")
        raise ZeroDivisionError


@pytest.mark.only_on("sqlite")
@pytest.mark.django_db
def test_it_is_whole_after_all_of_this(workspace):
    document = published(workspace, APPLES, CATS)
    document.chunks.filter(position=0).delete()
    DocumentChunk.objects.update(words=" other words ")

    assert fulltext.is_kept_in_step()
    assert fulltext.is_whole()
    assert breaches("words_of_every_chunk_can_be_looked_up") == []


@pytest.mark.only_on("sqlite")
@pytest.mark.django_db
def test_what_is_out_of_step_is_noticed_and_made_anew(workspace):
    published(workspace, APPLES, name="letter")
    execute("DROP TRIGGER chunk_words_added")
    late = published(workspace, CATS, name="late")

    assert found("cats") == []
    assert not fulltext.is_kept_in_step()
    assert breaches("words_of_every_chunk_can_be_looked_up") == [("document", late.pk)]
    fulltext.rebuild()
    assert found("cats") == ["late"]
    assert fulltext.is_kept_in_step()
    assert fulltext.is_whole()


@pytest.mark.only_on("sqlite")
@pytest.mark.django_db
def test_a_changed_word_behind_its_back_is_noticed(workspace):
    published(workspace, APPLES, name="letter")
    execute("DROP TRIGGER chunk_words_changed")
    DocumentChunk.objects.update(words=" other words ")

    assert not fulltext.is_whole()


@pytest.mark.only_on("sqlite")
def test_triggers_that_a_migration_has_lost_are_made_again(transactional_db):
    """SQLite alters a table by creating a new one, which loses the triggers."""
    field = DocumentChunk._meta.get_field("page")
    with connection.constraint_checks_disabled(), connection.schema_editor() as editor:
        editor._remake_table(DocumentChunk, alter_fields=[(field, field)])
    assert not fulltext.is_kept_in_step()

    call_command("migrate", verbosity=0)

    published(WorkspaceFactory(), APPLES, name="letter")
    assert found("apples") == ["letter"]
    assert fulltext.is_kept_in_step()
    assert fulltext.is_whole()
