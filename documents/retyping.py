"""Judges the documents of a type again after the type has changed, some at a time.

The rest of the work is in a row, so that it survives the worker that does it.
"""

from django.db import connection, transaction

from documents import fields, types
from documents.models import Document, Retyping
from work import failpoints

# Documents per transaction, so that no lock is held for long.
BATCH = 20
_ALL = 2**63 - 1


def begin(workspace_id: int, name: str) -> None:
    """Have all documents of a type judged again. The caller has changed the type."""
    Retyping.objects.update_or_create(workspace_id=workspace_id, name=name, defaults={"below": _ALL})


def advance(_owner: str = "") -> int:
    """The periodic task: judge the next documents of one type."""
    if not Retyping.objects.exists():
        return 0
    with transaction.atomic():
        skip = connection.features.has_select_for_update_skip_locked
        retyping = Retyping.objects.select_for_update(skip_locked=skip).order_by("id").first()
        if retyping is None:
            return 0
        of_type = Document.objects.filter(workspace=retyping.workspace_id, type=retyping.name)
        # Lock the documents, so that they are neither published nor corrected meanwhile.
        documents = of_type.filter(pk__lt=retyping.below).order_by("-id").select_for_update()
        ids = list(documents.values_list("pk", flat=True)[:BATCH])
        spec = types.of_workspace(retyping.workspace_id).get(retyping.name)
        for id in ids:
            fields.refresh(id, spec)
        if len(ids) < BATCH:
            retyping.delete()
        else:
            Retyping.objects.filter(pk=retyping.pk).update(below=ids[-1])
        failpoints.hit("retyping.before_commit")
    # Return 0, because no work waits for this: any other number would wake the worker's threads.
    return 0
