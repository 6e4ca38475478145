import docx
import pytest
from docx.enum.text import WD_BREAK

from tests.extractor.archives import docx_of, paragraph
from tests.extractor.extracting import DOCX, extract, written

pytestmark = [pytest.mark.once, pytest.mark.long]


def read(tmp_path, body, **more):
    return extract(written(tmp_path / "a.docx", docx_of(body, **more)), DOCX)


def saved(tmp_path, document):
    document.save(tmp_path / "made.docx")
    return extract(tmp_path / "made.docx", DOCX)


def test_headings_paragraphs_and_tables_come_in_their_order(tmp_path):
    document = docx.Document()
    document.add_heading("Offer", 1)
    document.add_paragraph("Dear reader,")
    table = document.add_table(2, 2)
    for cell, text in zip(
        [cell for row in table.rows for cell in row.cells], ["Item", "Price", "Tea", "3,50"], strict=True
    ):
        cell.text = text
    document.add_paragraph("Yours")

    (page,) = saved(tmp_path, document).pages

    assert page["text"] == "Offer\n\nDear reader,\n\nItem\tPrice\nTea\t3,50\n\nYours"
    assert page["tables"] == [{"box": None, "rows": [["Item", "Price"], ["Tea", "3,50"]]}]
    assert (page["width"], page["height"], page["words"], page["has_text"]) == (None, None, [], True)


def test_a_page_break_begins_a_page_also_within_a_paragraph(tmp_path):
    document = docx.Document()
    first = document.add_paragraph("one")
    first.add_run().add_break(WD_BREAK.PAGE)
    first.add_run("two")
    document.add_paragraph("three").paragraph_format.page_break_before = True

    assert [page["text"] for page in saved(tmp_path, document).pages] == ["one", "two", "three"]


def test_a_long_one_has_pages_that_end_with_paragraphs(tmp_path):
    texts = [f"{n} " + "word " * 99 for n in range(40)]

    outcome = read(tmp_path, "".join(map(paragraph, texts)))

    assert len(outcome.pages) > 5
    assert all(len(page["text"]) <= 3000 for page in outcome.pages)
    assert "\n\n".join(page["text"] for page in outcome.pages) == "\n\n".join(text.strip() for text in texts)


def test_ranges_are_of_these_pages(tmp_path):
    file = written(tmp_path / "a.docx", docx_of("".join(paragraph(f"{n} " + "x" * 2500) for n in range(5))))

    outcome = extract(file, DOCX, 2, 3)

    assert [(page["number"], page["text"][0]) for page in outcome.pages] == [(2, "1"), (3, "2")]
    assert outcome.document["pages_total"] == 5


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (
            "<w:p><w:ins><w:r><w:t>added</w:t></w:r></w:ins><w:del><w:r><w:delText>gone</w:delText></w:r></w:del></w:p>",
            "added",
        ),
        (f"<w:sdt><w:sdtContent>{paragraph('in a control')}</w:sdtContent></w:sdt>", "in a control"),
        ("<w:p><w:hyperlink><w:r><w:t>a link</w:t></w:r></w:hyperlink></w:p>", "a link"),
        ("<w:p><w:r><w:t>a</w:t><w:tab/><w:t>b</w:t><w:br/><w:t>c</w:t></w:r></w:p>", "a\tb\nc"),
        ("<w:p><w:pPr><w:tabs><w:tab w:val='left'/></w:tabs></w:pPr><w:r><w:t>a</w:t></w:r></w:p>", "a"),
        ("<w:p><w:r><w:instrText>PAGE</w:instrText><w:t>7</w:t></w:r></w:p>", "7"),
        ("<w:p><w:r><w:t>&lt;&amp;</w:t></w:r></w:p>", "<&"),
    ],
)
def test_what_is_text(tmp_path, body, text):
    assert read(tmp_path, body).pages[0]["text"] == text


def test_a_text_box_is_read_once(tmp_path):
    compatibility = "http://schemas.openxmlformats.org/markup-compatibility/2006"
    box = f"<w:txbxContent>{paragraph('boxed')}</w:txbxContent>"
    twice = f"<x:Choice>{box}</x:Choice><x:Fallback>{box}</x:Fallback>"
    both = f"<x:AlternateContent xmlns:x='{compatibility}'>{twice}</x:AlternateContent>"

    assert read(tmp_path, f"<w:p><w:r><w:t>before</w:t>{both}</w:r></w:p>").pages[0]["text"] == "before\n\nboxed"


def test_tables_within_tables_are_lines_of_their_cell(tmp_path):
    inner = f"<w:tbl><w:tr><w:tc>{paragraph('c')}</w:tc><w:tc>{paragraph('d')}</w:tc></w:tr></w:tbl>"
    outer = f"<w:tbl><w:tr><w:tc>{paragraph('a')}{inner}</w:tc><w:tc>{paragraph('b')}</w:tc></w:tr></w:tbl>"

    (page,) = read(tmp_path, outer).pages

    assert page["tables"] == [{"box": None, "rows": [["a\nc\td", "b"]]}]


def test_a_long_table_goes_on_on_the_next_page(tmp_path):
    row = "<w:tr>" + "".join(f"<w:tc>{paragraph('x' * 100)}</w:tc>" for _ in range(10)) + "</w:tr>"

    pages = read(tmp_path, f"<w:tbl>{row * 5}</w:tbl>").pages

    assert [len(table["rows"]) for page in pages for table in page["tables"]] == [2, 2, 1]


def test_a_cell_longer_than_a_page_flows_on(tmp_path):
    cell = "<w:tc>" + paragraph("word " * 2000) + "</w:tc>"

    pages = read(tmp_path, f"<w:tbl><w:tr>{cell}</w:tr></w:tbl>{paragraph('after')}").pages

    assert [len(page["text"]) <= 3000 for page in pages] == [True] * len(pages)
    assert " ".join(" ".join(page["text"] for page in pages).split()) == "word " * 2000 + "after"
    assert [len(page["tables"]) for page in pages] == [1, 0, 0, 0]


def test_images_are_counted(tmp_path):
    drawing = "http://schemas.openxmlformats.org/drawingml/2006/picture"

    (page,) = read(tmp_path, f"<w:p><w:r><w:drawing><p:pic xmlns:p='{drawing}'/></w:drawing></w:r></w:p>").pages

    assert (page["images"], page["has_text"]) == (1, False)


def test_one_without_text_is_a_page_without_text(tmp_path):
    assert [page["has_text"] for page in read(tmp_path, "<w:p/>").pages] == [False]


def test_the_same_file_gives_the_same_bytes(tmp_path):
    file = written(tmp_path / "a.docx", docx_of(paragraph("same")))

    assert extract(file, DOCX, directory=tmp_path / "1").output == extract(file, DOCX, directory=tmp_path / "2").output
