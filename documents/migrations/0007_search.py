import django.db.models.deletion
from django.db import connection, migrations, models
from django.db.models import OuterRef, Subquery

import documents.models.columns
from ade_embedder import DIMENSIONS, MODEL
from documents import fulltext, vectors

BATCH = 500


class AlterField(migrations.AlterField):
    # To compile the change of a column for SQL Server takes a server.
    reduces_to_sql = False


def workspace(*, null):
    return models.ForeignKey(
        "documents.workspace", django.db.models.deletion.PROTECT, db_index=False, null=null, related_name="+"
    )


def keep_as_vectors(apps, schema_editor):
    if connection.vendor == "postgresql" and vectors.make_extension():
        vectors.keep_as_vectors()


def keep_as_bytes(apps, schema_editor):
    if connection.vendor == "postgresql":
        vectors.keep_as_bytes()


def fill(apps, schema_editor):
    chunks = apps.get_model("documents", "DocumentChunk").objects
    its_document = apps.get_model("documents", "Document").objects.filter(pk=OuterRef("document_id"))
    chunks.update(workspace_id=Subquery(its_document.values("workspace_id")))
    last = 0
    while batch := list(chunks.filter(pk__gt=last).order_by("pk").only("text")[:BATCH]):
        for chunk in batch:
            chunk.words = documents.models.columns.as_line(chunk.text)
        chunks.bulk_update(batch, ["words"])
        last = batch[-1].pk
    if connection.vendor == "postgresql":
        # What waits for the commit would be in the way of the next change of the table.
        schema_editor.execute("SET CONSTRAINTS ALL IMMEDIATE")


def make_indexes(apps, schema_editor):
    fulltext.make()
    if connection.vendor == "postgresql":
        vectors.make_index(vectors.Model(MODEL, DIMENSIONS))


def drop_indexes(apps, schema_editor):
    fulltext.drop()
    if connection.vendor == "postgresql":
        vectors.drop_indexes()


class Migration(migrations.Migration):
    dependencies = [
        ("documents", "0006_retention"),
    ]

    operations = [
        migrations.AddField(
            model_name="documentchunk",
            name="words",
            field=documents.models.columns.WordsField(blank=True, default="", editable=False, of="text"),
        ),
        migrations.AddField(
            model_name="documentchunk",
            name="workspace",
            field=workspace(null=True),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
        AlterField(model_name="documentchunk", name="workspace", field=workspace(null=False)),
        # The column is the same but on PostgreSQL, which may not be able to have another.
        migrations.RunPython(keep_as_vectors, keep_as_bytes),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="document",
                    name="embedding",
                    field=documents.models.columns.EmbeddingField(blank=True, null=True),
                ),
                migrations.AlterField(
                    model_name="documentchunk",
                    name="embedding",
                    field=documents.models.columns.EmbeddingField(blank=True, null=True),
                ),
            ],
        ),
        migrations.AddIndex(
            model_name="document",
            index=models.Index(fields=["embedding_model", "workspace"], name="documents_by_model"),
        ),
        migrations.AddIndex(
            model_name="documentchunk",
            index=models.Index(fields=["workspace", "embedding_model", "id"], name="chunks_of_workspace"),
        ),
        migrations.RunPython(make_indexes, drop_indexes),
    ]
