"""The measure of what the reader understands, on a folder that the test makes itself."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from fpdf import FPDF

from benchmarks import understanding
from benchmarks.printed import is_equal, is_printed, iso_day

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]


def test_it_counts_what_is_right_wrong_missed_and_extra(tmp_path):
    pdf = FPDF()
    pdf.set_font("Helvetica", size=12)
    pdf.add_page()
    for line in ("Invoice number: 4711", "Order number: 77", "Due date: 2026-03-04", "Total: 12.50 EUR"):
        pdf.cell(0, 8, line, new_x="LMARGIN", new_y="NEXT")
    pdf.output(str(tmp_path / "a.pdf"))
    # The order number on the page is another one, the date is not printed, and the buyer is not recognised.
    truth = {"invoice_number": "4711", "gross_total": "12.5", "invoice_date": "2026-01-31", "order_number": None}
    (tmp_path / "truth.jsonl").write_text(json.dumps({"pdf": "a.pdf", "truth": truth}))
    command = [sys.executable, "-m", "benchmarks", "--only", "understanding", "--data", str(tmp_path)]

    done = subprocess.run(
        [*command, "--json", str(tmp_path / "found.json")], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "found.json").read_text())["page"]
    assert found["invoice_number"] == {"truths": 1, "printed": 1, "right": 1, "wrong": 0, "extra": 0}
    assert found["gross_total"] == {"truths": 1, "printed": 1, "right": 1, "wrong": 0, "extra": 0}
    assert found["invoice_date"] == {"truths": 1, "printed": 0, "right": 0, "wrong": 0, "extra": 0}
    assert found["order_number"] == {"truths": 0, "printed": 0, "right": 0, "wrong": 0, "extra": 1}
    assert [right for _, right in found["said"]] == [True, True]


def test_without_a_folder_it_says_what_is_missing():
    command = [sys.executable, "-m", "benchmarks", "--only", "understanding"]

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert "--data FOLDER" in done.stderr


def test_receipts_are_read_from_the_boxes_of_their_words(tmp_path):
    (tmp_path / "box").mkdir()
    (tmp_path / "key").mkdir()
    lines = (
        "10,10,200,10,200,30,10,30,CORNER SHOP",
        "10,50,90,50,90,70,10,70,Total",
        "300,50,360,50,360,70,300,70,9.00",
    )
    (tmp_path / "box" / "001.csv").write_text("\n".join(lines))
    (tmp_path / "key" / "001.json").write_text('{"company": "CORNER SHOP", "date": "25/12/18", "total": "RM9.00"}')

    (document,) = understanding.measure(tmp_path, understanding.PAGE)

    assert document.truth == {"seller": "CORNER SHOP", "invoice_date": "2018-12-25", "gross_total": "9.00"}
    assert document.fields["gross_total"]["value"] == "9.00"


def test_rows_are_paired_with_the_lines_they_fit_best():
    wanted = [{"description": "Nails", "amount": "1.00"}, {"description": "Screws", "amount": "2.00"}]
    found = [{"description": "Screws", "amount": "2"}, {"description": "Shipping", "amount": "5"}]
    document = understanding.Document("a", {"iban": "x"}, wanted, "Nails 1,00 Screws 2,00", {}, found, 0.1, 1)

    tallies = understanding.judge([document]).tallies

    assert vars(tallies["line_items.amount"]) == {"truths": 2, "printed": 2, "right": 1, "wrong": 0, "extra": 1}


@pytest.mark.parametrize(
    ("kind", "truth", "text"),
    [
        ("amount", "1511.30", "Summe 1.511,30 EUR"),
        ("amount", "1511.3", "Total 1 511,30"),
        ("amount", "-8.79", "8,79-"),
        ("amount", "300", "€ 300"),
        ("decimal", "20.0000", "20 Stk."),
        ("date", "2018-03-05", "vom 05.03.2018"),
        ("date", "2018-03-05", "March 5, 2018"),
        ("date", "2018-03-05", "5 marca 2018"),
        ("iban", "DE08700901001234567890", "IBAN DE08 7009 0100 1234 5678 90"),
        ("text", "Kunden AG\nMitte", "KUNDEN AG\nHerr X\nMitte"),
    ],
)
def test_a_value_is_found_in_its_usual_formats(kind, truth, text):
    assert is_printed(kind, truth, text)


@pytest.mark.parametrize(
    ("kind", "truth", "text"),
    [
        ("amount", "511.30", "1.511,30"),
        ("amount", "20", "20 Stk."),
        ("date", "2018-03-05", "15.03.2018"),
        ("number", "4711", "471102"),
        ("text", "1", "1"),
    ],
)
def test_a_value_is_not_found_inside_another_one(kind, truth, text):
    assert not is_printed(kind, truth, text)


def test_values_are_compared_in_a_normal_form():
    assert is_equal("amount", "300", "300.00 EUR")
    assert not is_equal("amount", "300 USD", "300.00 EUR")
    assert is_equal("text", "GLN 43\nMuster GmbH", "MUSTER GMBH")
    assert not is_equal("iban", "DE1", "DE2")
    assert [iso_day(each) for each in ("25/12/18", "20181225", "25 DEC 2018", "2018-12-25", "31.02.2018")] == [
        *["2018-12-25"] * 4,
        "",
    ]
