import pytest

from documents import cell_corrections
from documents.cell_corrections import Place, correct, withdraw
from documents.corrections import InvalidCorrection
from documents.models import CellCorrection
from documents.tables import LONGEST_TEXT
from tests.factories import events_of, force_status, table_of, told, write
from work import clock

pytestmark = pytest.mark.django_db

PEARS = Place("table_1", 2, "article")


@pytest.fixture
def table(document):
    return table_of(document)


def test_a_correction_stands_beside_what_was_read(document, table):
    made = correct(document.pk, PEARS, " Plums\r\n", actor="olga")

    assert str(made) == "Corrected article in row 2 of table_1 from “Pears” to “Plums”."
    cell = cell_corrections.find(document.pk, PEARS)
    assert (cell.text, cell.machine_text, cell.is_confirmed) == ("Plums", "Pears", False)
    assert (cell.correction.by, cell.correction.at <= clock.now()) == ("olga", True)


def test_it_is_in_the_history_of_the_document(document, table):
    correct(document.pk, PEARS, "Plums", actor="olga")
    correct(document.pk, PEARS, "Grapes", actor="ravi")

    assert told(document) == ["DOCUMENT_ADDED", "CELL_CORRECTED", "CELL_CORRECTED"]
    event = events_of(document).last()
    assert (event.actor, event.message) == (
        "ravi",
        "Corrected article in row 2 of table_1 from “Plums” to “Grapes”.",
    )
    assert event.data == {
        **{"table": "table_1", "row": 2, "column": "article"},
        **{"machine_text": "Pears", "before": "Plums", "text": "Grapes"},
    }


def test_to_say_the_same_is_to_confirm(document, table):
    made = correct(document.pk, PEARS, "Pears", actor="olga")

    assert (made.is_confirmed, str(made)) == (True, "Confirmed article in row 2 of table_1: “Pears”.")
    assert cell_corrections.find(document.pk, PEARS).is_confirmed


def test_a_cell_may_be_empty(document, table):
    correct(document.pk, PEARS, "", actor="olga")

    assert cell_corrections.find(document.pk, PEARS).text == ""


def test_without_its_correction_the_machine_is_right_again(document, table):
    correct(document.pk, PEARS, "Plums", actor="olga")

    assert withdraw(document.pk, PEARS, actor="ravi")

    assert not CellCorrection.objects.exists()
    event = events_of(document).last()
    assert (event.kind, event.data["before"], event.data["text"]) == ("CELL_CORRECTION_WITHDRAWN", "Plums", None)
    assert event.message == "Withdrew the correction of article in row 2 of table_1: from “Plums” back to “Pears”."
    assert not withdraw(document.pk, PEARS, actor="ravi")


def test_a_correction_of_a_cell_that_is_gone_can_be_withdrawn(document, table):
    correct(document.pk, PEARS, "Plums", actor="olga")
    table.delete()

    assert withdraw(document.pk, PEARS, actor="ravi")
    assert events_of(document).last().data["machine_text"] is None


@pytest.mark.parametrize(
    "place",
    [
        Place("table_2", 1, "article"),
        Place("table_1", 3, "article"),
        Place("table_1", 0, "article"),
        Place("table_1", 1, "colour"),
    ],
)
def test_a_cell_that_is_not_there_is_not_corrected(document, table, place):
    assert correct(document.pk, place, "x", actor="olga") is None
    assert not CellCorrection.objects.exists()
    assert told(document) == ["DOCUMENT_ADDED"]


def test_what_cannot_be_stored_is_refused(document, table):
    with pytest.raises(InvalidCorrection, match="at most 2,000 characters, not 2,001") as refused:
        correct(document.pk, PEARS, "x" * (LONGEST_TEXT + 1), actor="olga")
    assert refused.value.code == "too_long"
    force_status(document, "processed")
    write(document, purged_at=clock.now(), file="")
    with pytest.raises(InvalidCorrection, match="has been purged") as refused:
        correct(document.pk, PEARS, "x", actor="olga")
    assert refused.value.code == "purged"
    assert correct(999_999, PEARS, "x", actor="olga") is None
