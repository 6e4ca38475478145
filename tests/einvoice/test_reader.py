"""E-invoices in the program that reads documents."""

import json

import pytest

from ade_extractor import DIGEST, OUTPUT, attachments, digest, einvoices, pages, pdf, xml_file
from ade_extractor.trouble import Trouble
from tests.einvoice import making
from tests.extractor.pdfs import bomb, by_hand, stream

PDF, XML = "application/pdf", "application/xml"


def with_attachments(*files):
    """Return a PDF of one page with these names and embedded streams."""
    names = "".join(f"({name}){number} 0 R" for number, (name, _) in enumerate(files, 4))
    kids = [
        f"<</Type/Filespec/F({name})/UF({name})/EF<</F {number} 0 R>>>>"
        for number, (name, _) in enumerate(files, 4 + len(files))
    ]
    tree = f"<</Type/Catalog/Pages 2 0 R/Names<</EmbeddedFiles<</Names[{names}]>>>>>>"
    page = "<</Type/Page/Parent 2 0 R/MediaBox[0 0 100 100]>>"
    return by_hand([tree, "<</Type/Pages/Kids[3 0 R]/Count 1>>", page, *kids, *(content for _, content in files)])


def digested(path, directory, content_type=PDF):
    reader = pdf if content_type == PDF else xml_file
    pages.write(reader.read(path, content_type, 1, 99), directory, lambda number: None, with_words=True)
    digest.write([directory / OUTPUT], directory, lambda number: ("[]", []), einvoices.find(path, content_type))
    return json.loads((directory / DIGEST).read_text())


@pytest.mark.parametrize("name", ["factur-x__xml", "ZUGFeRD-invoice__xml", "xrechnung__xml", "invoice 12__XML"])
def test_the_xml_inside_a_pdf_is_read(tmp_path, name):
    path = making.pdf(tmp_path / "a.pdf", **{name: making.cii()})

    found = digested(path, tmp_path)

    values = {each["name"]: each["value"] for each in found["fields"] if each["source"] == "e-invoice"}
    assert (values["gross_total"], values["iban"]) == ("52.92 EUR", making.IBAN)
    assert [each["name"] for each in found["tables"]][:3] == ["line_items", "tax_breakdown", "allowances_and_charges"]
    assert found["type"]["name"] == "invoice"
    assert found["problems"] == []


def test_a_pdf_without_xml_is_digested_as_before(tmp_path):
    found = digested(making.pdf(tmp_path / "a.pdf"), tmp_path)

    assert found["fields"]
    assert "e-invoice" not in {each["source"] for each in found["fields"]}
    assert "tax_breakdown" not in {each["name"] for each in found["tables"]}
    assert found["problems"] == []


@pytest.mark.parametrize(
    ("attachments", "code"),
    [
        ({"factur-x__xml": "<broken"}, "broken_e_invoice"),
        ({"factur-x__xml": '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'}, "broken_e_invoice"),
        ({"factur-x__xml": b"\xff\xfe\xfd"}, "broken_e_invoice"),
        ({"factur-x__xml": "<letter>hello</letter>"}, "unknown_e_invoice"),
        ({"factur-x__xml": making.cii(), "xrechnung__xml": making.ubl()}, "several_e_invoices"),
    ],
)
def test_what_is_wrong_with_an_attachment_is_a_problem(tmp_path, attachments, code):
    found = digested(making.pdf(tmp_path / "a.pdf", **attachments), tmp_path)

    assert [each["code"] for each in found["problems"]] == [code]


def test_other_attachments_do_not_matter(tmp_path):
    more = {
        "data__xml": "<not-an-invoice/>",
        "broken__xml": "<",
        "photo__png": b"\x89PNG",
        "factur-x__xml": making.cii(),
    }

    found = digested(making.pdf(tmp_path / "a.pdf", **more), tmp_path)

    assert found["problems"] == []
    assert found["type"]["name"] == "invoice"


def test_of_several_e_invoices_the_one_with_a_known_name_counts(tmp_path):
    other = making.cii().replace(making.NUMBER, "other")

    found = digested(making.pdf(tmp_path / "a.pdf", **{"copy__xml": other, "factur-x__xml": making.cii()}), tmp_path)

    assert {"invoice_number": "2026-117"}.items() <= {each["name"]: each["value"] for each in found["fields"]}.items()
    assert "“factur-x.xml”, not from “copy.xml”" in found["problems"][0]["message"]


def test_equal_copies_of_an_e_invoice_are_no_problem(tmp_path):
    path = making.pdf(tmp_path / "a.pdf", **{"factur-x__xml": making.cii(), "copy__xml": making.cii()})

    assert digested(path, tmp_path)["problems"] == []


def test_an_attachment_that_unpacks_to_too_much_is_a_problem(tmp_path):
    path = tmp_path / "bomb.pdf"
    path.write_bytes(with_attachments(("factur-x.xml", bomb(b" ", 40 << 20))))

    found = einvoices.find(path, PDF)

    assert [problem.code for problem in found.problems] == ["broken_e_invoice"]
    assert "it is damaged or too large" in found.problems[0].message


def test_only_xml_is_unpacked(tmp_path, monkeypatch):
    path = making.pdf(tmp_path / "a.pdf", **{"photo__png": b"\x89PNG", "factur-x__xml": making.cii()})
    unpacked = []
    original = attachments._content
    monkeypatch.setattr(attachments, "_content", lambda each: unpacked.append(1) or original(each))

    assert einvoices.find(path, PDF).invoice is not None
    assert unpacked == [1]


def test_of_very_many_attachments_only_the_first_are_looked_at(tmp_path):
    path = tmp_path / "many.pdf"
    path.write_bytes(with_attachments(*((f"{number:04}.xml", stream("<")) for number in range(150))))

    assert len(list(attachments.of_pdf(path))) == 100
    assert einvoices.find(path, PDF).problems == []


def test_an_attachment_without_content_is_a_problem(tmp_path):
    path = tmp_path / "empty.pdf"
    path.write_bytes(with_attachments(("factur-x.xml", "<<>>")))

    assert [problem.code for problem in einvoices.find(path, PDF).problems] == ["broken_e_invoice"]


def test_an_attachment_that_is_too_large_is_a_problem(tmp_path, monkeypatch):
    path = making.pdf(tmp_path / "a.pdf", **{"factur-x__xml": making.cii()})
    monkeypatch.setattr("ade_extractor.attachments.MOST_BYTES", 1000)

    (problem,) = digested(path, tmp_path)["problems"]

    assert problem["code"] == "broken_e_invoice"
    assert "it is damaged or too large" in problem["message"]


@pytest.mark.parametrize("make", [making.cii, making.zugferd_1, making.ubl, making.fattura])
def test_a_bare_e_invoice_is_read_with_places_on_its_own_page(tmp_path, make):
    path = tmp_path / "invoice.xml"
    path.write_text(make())

    found = digested(path, tmp_path, XML)

    assert found["problems"] == []
    assert found["pages"] <= 2
    assert found["text"].startswith("Invoice 2026-117\nInvoice\nInvoice number\t2026-117\n")
    assert {each["source"] for each in found["fields"]} == {"e-invoice"}
    assert [each["name"] for each in found["fields"] if each["page"] is None] == []
    (lines, *_) = found["tables"]
    assert lines["rows"][0][2]["box"] is not None


def test_all_invoices_of_a_file_are_shown_and_found_by_search(tmp_path):
    path = tmp_path / "two.xml"
    path.write_text(making.fattura(bodies=2).replace(making.NUMBER, "2026-118", 1))

    found = digested(path, tmp_path, XML)

    assert found["pages"] == 2
    assert "\n\nInvoice 2026-117\n" in found["text"]
    assert {each["name"]: each["value"] for each in found["fields"]}["invoice_number"] == "2026-118"
    assert {each["page"] for each in found["fields"]} == {1}
    assert [each["code"] for each in found["problems"]] == ["several_invoices"]


def test_other_xml_is_read_as_text(tmp_path):
    path = tmp_path / "other.xml"
    path.write_text('<order xmlns="urn:x"><id>12</id><text>Two hammers</text><empty/></order>')

    found = digested(path, tmp_path, XML)

    assert found["text"] == "id\t12\ntext\tTwo hammers"
    assert found["type"]["name"] == "other"
    assert "e-invoice" not in {each["source"] for each in found["fields"]}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"<a><b></a>", "not well-formed"),
        (b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "document type or entities"),
        (b"<a>" * 100, "nested more than 64 deep"),
    ],
)
def test_broken_xml_files_are_refused_with_a_reason(tmp_path, content, reason):
    path = tmp_path / "broken.xml"
    path.write_bytes(content)

    with pytest.raises(Trouble, match=reason) as refused:
        xml_file.read(path, XML, 1, 1)

    assert refused.value.code == "malformed"


def test_a_long_e_invoice_has_several_pages(tmp_path):
    line = making._cii_line(1, "N-10", "Steel nails", "100", "0.0950", "9.50", "19.00")
    path = tmp_path / "long.xml"
    path.write_text(making.cii().replace(line, line * 200))

    reading = xml_file.read(path, XML, 2, 3)

    assert reading.pages_total > 4
    assert [page.number for page in reading.pages] == [2, 3]
    assert all(0 <= share <= 1 for page in reading.pages for _, *box in json.loads(page.words) for share in box)


def test_a_page_of_an_e_invoice_is_drawn(tmp_path):
    path = tmp_path / "invoice.xml"
    path.write_text(making.cii().replace("Steel nails", "Śruby (żółte) \\ 2\u0007mm €".replace("\u0007", " ")))

    picture = xml_file.draw(path, 1, lambda width, height: 1.0)

    assert (picture.width, picture.height) == (595, 842)
    (page,) = xml_file.read(path, XML, 1, 1).pages
    _word, left, top, right, bottom = next(each for each in json.loads(page.words) if each[0] == "2026-117")
    rows = range(int(top * picture.height), int(bottom * picture.height))
    inside = [
        picture.data[row * picture.stride + int(left * 595) * picture.channels :][: int((right - left) * 595) * 4]
        for row in rows
    ]
    assert any(min(row) < 128 for row in inside), "there is no dark ink where the word should be"
    with pytest.raises(Trouble, match="There is no page 9"):
        xml_file.draw(path, 9, lambda width, height: 1.0)
