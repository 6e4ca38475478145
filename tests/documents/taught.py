"""Documents of one sender with their words stored, as processing leaves them."""

import json
from io import BytesIO

from documents import learning, publication, sender_updates, words
from documents.models import Document, DocumentField, SenderUpdate
from tests.factories import DocumentFactory, JobFactory, SenderFactory, SenderIdentityFactory
from tests.understanding.printed import invoice

IBAN = "DE89370400440532013000"


def sender_of(workspace, **values):
    sender = SenderFactory(workspace=workspace, **values)
    SenderIdentityFactory(sender=sender, kind="iban", value=IBAN)
    return sender


def field(name, value, confidence=0.9, **others):
    return {"name": name, "value": value, "kind": "text", "confidence": confidence, "source": "page", **others}


def arrive(workspace, *fields, pages=None, document=None, **printed):
    """Publish a document of the sender with this IBAN as the stages do, and return it."""
    document = document or DocumentFactory(workspace=workspace, status="processed")
    job = JobFactory(document=document, status="COMPLETED")
    pages = invoice(**printed) if pages is None else pages
    words.store(job.pk, pages)
    named = [field("iban", IBAN, 0.95, kind="iban"), *fields]
    head = {"chunks": 0, "fields": named, "mean": "", "model": "m", "pages": 1, "problems": [], "text": "A"}
    file = BytesIO(json.dumps(head | {"type": None}).encode() + b"\n")
    publication.publish(document.pk, file, words_job=job.pk, pages=pages)
    return Document.objects.get(pk=document.pk)


def learned():
    """Let the periodic task learn from all corrections."""
    learning.learn_due()


def update_all():
    while SenderUpdate.objects.exists():
        before = set(SenderUpdate.objects.values_list("pk", "below"))
        sender_updates.advance()
        assert set(SenderUpdate.objects.values_list("pk", "below")) != before


def given(document):
    """Return the values that the sender's lessons give on a document."""
    rows = DocumentField.objects.filter(document=document, source="sender")
    return dict(rows.values_list("name", "value"))


def state_of(*documents):
    """Return all values of the documents with their flags."""
    rows = DocumentField.objects.filter(document__in=documents).order_by("document", "name", "source")
    columns = ("document", "name", "source", "value", "chosen", "in_conflict", "to_review", "also_found")
    return list(rows.values_list(*columns))
