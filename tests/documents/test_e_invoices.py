"""E-invoices pass through all stages, with real readers in a sandbox."""

from threading import Event

import pytest

from documents import fields, previews, work_types
from documents.models import Document
from documents.reader_sessions import SESSIONS
from tests.documents.processing import add, process
from tests.einvoice import making
from tests.factories import W1
from work.claims import Holdings
from work.worker_thread import Bell, WorkerThread

pytestmark = pytest.mark.long

XML = "application/xml"


@pytest.fixture(autouse=True)
def storage(settings, tmp_path):
    settings.MEDIA_ROOT, settings.VAR_DIR = tmp_path / "media", tmp_path / "var"
    settings.VAR_DIR.mkdir()
    SESSIONS.close()


@pytest.fixture
def slot(transactional_db):
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


def processed(slot, content, content_type, name):
    document = add(content, content_type, name)
    process(slot)
    document.refresh_from_db()
    assert document.status == Document.Status.PROCESSED
    return document, {each.name: each for each in fields.of_document(document.pk)}


def test_the_values_of_the_xml_inside_a_pdf_are_published(slot, tmp_path):
    pdf = making.pdf(tmp_path / "invoice.pdf", **{"factur-x__xml": making.cii()}).read_bytes()

    _, found = processed(slot, pdf, "application/pdf", "invoice.pdf")

    gross = found["gross_total"]
    assert (gross.value, gross.confidence, gross.source, gross.page) == ("52.92 EUR", 1, "e-invoice", 1)
    assert gross.box[0] > 0.5
    assert found["seller_address"].value == "Am Markt 1\n28195 Bremen\nDE"


def test_a_bare_e_invoice_becomes_a_document_with_a_picture(slot):
    document, found = processed(slot, making.ubl().encode(), XML, "invoice.xml")

    assert found["iban"].value == making.IBAN
    assert found["iban"].box is not None
    assert document.text.startswith("Invoice 2026-117\n")
    assert previews.can_draw(document)
    assert previews.picture(document, found["iban"].page).startswith(b"\x89PNG")


def test_a_broken_xml_file_fails_with_a_reason(slot):
    document = add(b'<?xml version="1.0"?><a><b></a>', XML, "broken.xml")

    process(slot)

    document.refresh_from_db()
    job = document.jobs.get()
    assert (document.status, job.failure_type, job.attempts) == ("failed", "DOCUMENT_REFUSED", 1)
    assert "This XML file cannot be read: it is not well-formed" in job.error_message
