from decimal import Decimal

import pytest

from ade_understanding.recognition import recognise
from ade_understanding.vocabulary import LINE_COLUMNS, LINE_ITEMS
from tests.understanding.drawing.layouts import LAYOUTS, invoice
from tests.understanding.drawing.wording import LANGUAGES
from tests.understanding.test_labelled_fields import page_of, words_of

pytestmark = pytest.mark.once


def cells_of(table):
    names = [column["name"] for column in table["columns"]]
    return [dict(zip(names, (cell["value"] for cell in row), strict=True)) for row in table["rows"]]


def items_on(*texts):
    texts = [("Invoice no. 17", 0.1, 0.02), *texts]
    return recognise([page_of("\n".join(text for text, _, _ in texts), words_of(*texts))]).line_items


HEADING = [("Item", 0.1, 0.1), ("Description", 0.2, 0.1), ("Qty", 0.5, 0.1), ("Price", 0.6, 0.1), ("Amount", 0.8, 0.1)]


def test_the_lines_below_a_heading_until_the_totals():
    table = items_on(
        *HEADING,
        *(("1", 0.1, 0.12), ("Cider press", 0.2, 0.12), ("2 pcs", 0.5, 0.12), ("10.50", 0.6, 0.12)),
        *(("21.00", 0.8, 0.12), ("SN 12345", 0.2, 0.135)),
        *(("2", 0.1, 0.15), ("Apples", 0.2, 0.15), ("1", 0.5, 0.15), ("4.3333", 0.6, 0.15), ("4.33", 0.8, 0.15)),
        *(("Subtotal", 0.6, 0.18), ("25.33 EUR", 0.8, 0.18)),
    )

    assert (table["name"], table["page"]) == (LINE_ITEMS, 1)
    assert cells_of(table) == [
        {"position": "1", "description": "Cider press", "quantity": "2", "unit": "pcs", "unit_price": "10.50 EUR"}
        | {"amount": "21.00 EUR"},
        {"position": "2", "description": "Apples", "quantity": "1", "unit": None, "unit_price": "4.3333 EUR"}
        | {"amount": "4.33 EUR"},
    ]


def test_columns_have_the_kinds_of_the_vocabulary_and_their_labels():
    table = items_on(*HEADING, ("Apples", 0.2, 0.12), ("1", 0.5, 0.12), ("4.33", 0.6, 0.12), ("4.33", 0.8, 0.12))

    columns = {column["name"]: (column["label"], column["kind"]) for column in table["columns"]}
    assert columns["unit_price"] == ("Price", "amount")
    assert all(kind == LINE_COLUMNS[name] for name, (_, kind) in columns.items())


def test_each_cell_has_its_place():
    table = items_on(*HEADING, ("Apples", 0.2, 0.12), ("1", 0.5, 0.12), ("4.33", 0.6, 0.12), ("4.33", 0.8, 0.12))

    (row,) = table["rows"]
    assert [cell["page"] for cell in row] == [1] * len(row)
    assert [round(cell["box"][0], 2) for cell in row] == [0.2, 0.5, 0.6, 0.8]


@pytest.mark.parametrize(
    "text",
    ["Dear Ann,\nwe met in May.", "Total 12.00 EUR", "Item\nDescription", "Description Qty Amount\nnothing here"],
)
def test_other_texts_have_no_lines(text):
    assert recognise([page_of(text)]).line_items is None


@pytest.mark.long
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_amounts_of_drawn_lines(language):
    right = total = 0
    for layout in LAYOUTS:
        for seed in range(4):
            paper = invoice(f"lines{seed}", language, layout)
            table = recognise(paper.pages).line_items
            found = [] if table is None else cells_of(table)
            amounts = [Decimal(row["amount"].partition(" ")[0]) for row in found if row.get("amount")]
            total += len(paper.lines)
            right += sum(amount in amounts for *_, amount in paper.lines)

    assert right / total >= 0.9


def test_a_quantity_is_no_number_of_the_delivery_that_its_item_is_named_after():
    texts = [("Invoice no. 17", 0.1, 0.02), *HEADING]
    texts += [("Delivery", 0.2, 0.12), ("1", 0.5, 0.12), ("12.00", 0.6, 0.12), ("12.00", 0.8, 0.12)]
    understood = recognise([page_of("\n".join(text for text, _, _ in texts), words_of(*texts))])

    assert cells_of(understood.line_items)[0]["description"] == "Delivery"
    assert {field["name"] for field in understood.fields} == {"invoice_number"}


def test_totals_side_by_side_end_the_lines():
    table = items_on(
        *HEADING,
        *(("Apples", 0.2, 0.12), ("1", 0.5, 0.12), ("4.33", 0.6, 0.12), ("4.33", 0.8, 0.12)),
        *(("Net CHF", 0.2, 0.16), ("VAT 8.1 % CHF", 0.5, 0.16), ("Gross total CHF", 0.8, 0.16)),
        *(("4.33", 0.2, 0.18), ("0.35", 0.5, 0.18), ("4.68", 0.8, 0.18)),
    )

    assert len(table["rows"]) == 1
