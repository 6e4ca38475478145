"""The measure of what ADE notices: changes of e-invoices that the test makes itself."""

import pytest

from benchmarks import changes, pdf_editing
from tests.einvoice import making

pytestmark = pytest.mark.once


def test_all_changes_of_a_small_folder_are_noticed(tmp_path):
    making.pdf(tmp_path / "a.pdf", **{"factur-x__xml": making.cii()})
    making.pdf(tmp_path / "b.pdf", **{"factur-x__xml": making.zugferd_1()})
    lines = []

    done = changes.run(tmp_path, 12, 1, lines.append, with_list=False)

    assert [change.side for change in done] == ["page", "xml"] * 6
    assert len({change.name for change in done}) == 12
    assert lines[0] == "12 of 12 changes noticed", lines
    assert lines[-1] == "0 of 2 untouched files have problems"


def test_a_text_of_a_page_is_replaced_and_the_xml_stays(tmp_path):
    path, target = making.pdf(tmp_path / "a.pdf", **{"factur-x__xml": making.cii()}), tmp_path / "b.pdf"

    assert pdf_editing.replace_text(path, target, ["52[.]92"], lambda shown: "99.99")

    assert pdf_editing.text_of(target).replace("\r\n", "\n").count("99.99 EUR") == 1
    assert "52.92" not in pdf_editing.text_of(target)
    assert changes.xml_inside(target).decode() == making.cii()
    assert not pdf_editing.replace_text(path, target, ["not there"], str)


@pytest.mark.parametrize(
    ("kind", "value", "other"),
    [
        ("date", "2026-03-31", "2026-04-09"),
        ("amount", "52.92", "51.92"),
        ("amount", "11.50", "12.50"),
        ("text", "Kranbau Weser AG", "Kranbau Weser Changed"),
        ("iban", "DE12", "DE17"),
    ],
)
def test_the_other_value_is_of_the_same_kind(kind, value, other):
    assert changes.changed(kind, value) == other
