"""Notices the same invoice in two files: the same seller, number and total, but other bytes."""

import hashlib
from collections.abc import Iterable

from django.db import connection

from documents.choosing import Problem, normal
from documents.models import Document, DocumentField, FieldCorrection
from workspaces.models import Workspace

CODE = "same_invoice"
# The first of these that a document has stands for its seller.
_SELLER = ("vat_id", "iban", "tax_number", "seller")
_OTHERS = ("invoice_number", "gross_total")
NAMES = frozenset((*_SELLER, *_OTHERS))
_KINDS = {"gross_total": "amount", "seller": "text"}


def find(document_id: int, rows: Iterable[DocumentField]) -> list[Problem]:
    """Store the key of an invoice, and return a problem if an earlier document has the same one.

    Must run in a transaction.
    """
    values = {row.name: row.value for row in rows if row.chosen and row.name in NAMES}
    corrections = FieldCorrection.objects.filter(document=document_id, name__in=NAMES)
    if values.keys().isdisjoint(_OTHERS) and not corrections.exists():
        return []
    values |= dict(corrections.values_list("name", "value"))
    key = _key(values)
    document = Document.objects.filter(pk=document_id)
    before, workspace_id = document.values_list("invoice_key", "workspace_id").get()
    if key != before:
        document.update(invoice_key=key)
    if not key:
        return []
    # If two documents are published at the same moment, the second waits here until it can see the first.
    no_key = connection.features.has_select_for_no_key_update
    Workspace.objects.select_for_update(no_key=no_key).filter(pk=workspace_id).values_list("pk", flat=True).first()
    same = Document.objects.kept().filter(workspace=workspace_id, invoice_key=key, pk__lt=document_id)
    earlier = same.order_by("pk").values_list("pk", "name").first()
    if earlier is None:
        return []
    id, name = earlier
    return [Problem(CODE, "", f"Document {id} ({name}) has the same seller, invoice number and total.")]


def _key(values: dict[str, str]) -> str:
    """Return a hash of seller, number and total, or "" if one of them is missing."""
    seller = next((name for name in _SELLER if values.get(name)), None)
    if seller is None or not all(values.get(name) for name in _OTHERS):
        return ""
    parts = [normal(values[name], _KINDS.get(name, "number")) for name in (seller, *_OTHERS)]
    return hashlib.sha256("\n".join([seller, *parts]).encode()).hexdigest()
