"""Process documents as workers do."""

import json
from io import BytesIO

from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from fpdf import FPDF

from documents import lifecycle, orchestrator, outputs
from documents.models import DocumentProcessingJob, OutsideService
from tests.factories import W1, WorkspaceFactory
from work import clock

PDF, TXT = "application/pdf", "text/plain"


def add(content, content_type=PDF, name="invoice.pdf", workspace=None):
    file = default_storage.save(f"documents/{name}", ContentFile(content))
    values = {
        "name": name, "file": file, "content_type": content_type, "size_bytes": len(content), "sha256": "0" * 64,
    }  # fmt: skip
    return lifecycle.add_document(workspace or WorkspaceFactory(), values)


def store_output(path, value):
    outputs.store(path, BytesIO(json.dumps(value, sort_keys=True).encode()))


def pdf(*texts):
    """Return a PDF with a page for each text."""
    made = FPDF()
    made.set_font("Helvetica", size=12)
    for text in texts:
        made.add_page()
        made.multi_cell(0, 6, text)
    return bytes(made.output())


def process(slot, most=200):
    """Process until no work is left; return the number of stages done."""
    done = 0
    for _ in range(most):
        brought_on = orchestrator.orchestrate(W1)
        if slot.run_once():
            done += 1
        elif not brought_on:
            return done
    raise AssertionError("the processing does not end")


def make_due():
    """End the pause before the next attempt of all jobs, and the pauses of the services."""
    now = clock.now()
    DocumentProcessingJob.objects.filter(status="PENDING").update(next_attempt_at=now)
    OutsideService.objects.filter(away_since__isnull=False).update(next_try_at=now, asked_until=None)
