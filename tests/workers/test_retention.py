import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from documents.models import Document
from tests.factories import DocumentFactory, WorkspaceFactory, age, events_of
from tests.stepping import until

pytestmark = pytest.mark.long


def test_a_worker_purges_what_is_due_beside_its_work(programs):
    workspace = WorkspaceFactory(document_retention_days=30)
    key = default_storage.save("documents/2024/01/old", ContentFile(b"Dear Olga"))
    old = age(DocumentFactory(workspace=workspace, status="processed", file=key), 31 * 24 * 3600)
    young = DocumentFactory(workspace=workspace, status="processed")

    worker = programs.worker()

    until(lambda: Document.objects.filter(pk=old.pk, purged_at__isnull=False).exists())
    until(lambda: not default_storage.exists(key))
    assert events_of(old).last().actor.startswith("w1@")
    assert Document.objects.get(pk=young.pk).purged_at is None
    assert "task_failed" not in worker.logged()
