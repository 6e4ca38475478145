"""Documents with tables pass through their stages as with a worker."""

import pytest

from documents import cell_corrections, lifecycle, tables
from documents.cell_corrections import Place
from documents.models import CellCorrection, DocumentTable
from documents.reader_sessions import SESSIONS
from tests.documents.processing import PDF, add, process
from tests.factories import events_of
from tests.understanding.table_pages import Page
from tests.understanding.test_tables import GOODS, ruled

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]


@pytest.fixture(autouse=True)
def storage(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"
    SESSIONS.close()
    yield
    SESSIONS.close()


def texts(document):
    table = DocumentTable.objects.get(document=document)
    return [[cell.text for cell in row.cells] for row in tables.rows_of(table)]


def test_processing_keeps_tables_and_again_leaves_corrections(slot, tmp_path):
    page = Page(tmp_path / "page.pdf")
    ruled(page)
    document = add(page.save().read_bytes(), PDF)

    process(slot)

    assert texts(document) == GOODS
    publish = document.jobs.get().stages.get(name="publish")
    assert events_of(publish).filter(kind="STAGE_DONE").get().data["tables"] == 1
    cell_corrections.correct(document.pk, Place("table_1", 2, "quantity"), "8", actor="olga")
    lifecycle.reprocess(document, actor="olga")

    process(slot)

    assert texts(document)[1] == ["Pears", "8", "80.50"]
    assert CellCorrection.objects.get().machine_text == "7"
    assert DocumentTable.objects.count() == 1
