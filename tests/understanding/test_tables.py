import pytest

from tests.understanding.table_pages import Page, grids, kinds, labels, tables, texts

pytestmark = pytest.mark.once

GOODS = [["Apples", "12", "1,250.00"], ["Pears", "7", "80.50"], ["Plums", "1,004", "3.25"], ["Cherries", "30", "12.00"]]
PROSE = "the committee has considered each of these proposals and finds that most of them deserve further study"


@pytest.fixture
def page(tmp_path):
    return Page(tmp_path / "page.pdf")


def ruled(page, left=60, top=100, rows=GOODS, head=("Article", "Quantity", "Price")):
    lefts = [left, left + 100, left + 170, left + 240]
    page.grid(lefts, [top + 20 * row for row in range(len(rows) + 2)])
    for number, row in enumerate([head, *rows]):
        for column, text in enumerate(row):
            page.text(lefts[column] + 4, top + 20 * number + 4, text)


def unruled(page, left=60, top=100, rows=GOODS, head=("Article", "Quantity", "Price")):
    for number, row in enumerate([head, *rows]):
        page.text(left, top + 15 * number, row[0])
        page.right(left + 200, top + 15 * number, row[1])
        page.right(left + 300, top + 15 * number, row[2])


def test_a_table_with_borders_becomes_rows_with_typed_columns(page):
    ruled(page)

    (table,) = tables(page.save())

    assert labels(table) == ["Article", "Quantity", "Price"]
    assert kinds(table) == ["text", "decimal", "decimal"]
    assert texts(table) == GOODS
    assert [[cell["value"] for cell in row] for row in table["rows"]][:2] == [
        [None, "12", "1250.00"],
        [None, "7", "80.50"],
    ]
    assert table["page"] == 1
    left, top, right, bottom = table["rows"][0][2]["box"]
    assert (0.37 < left < right < 0.51, 0.13 < top < bottom < 0.17) == (True, True)


def test_a_table_without_borders_is_found_by_its_columns(page):
    unruled(page)

    (table,) = tables(page.save())

    assert (labels(table), texts(table)) == (["Article", "Quantity", "Price"], GOODS)


def test_a_table_between_horizontal_lines_is_found(page):
    unruled(page)
    for top in (97, 114, 176):
        page.across(top, 58, 362)

    (table,) = tables(page.save())

    assert (labels(table), texts(table)) == (["Article", "Quantity", "Price"], GOODS)


def test_a_header_across_columns_is_part_of_the_names_of_all_of_them(page):
    lefts, tops = [60, 160, 230, 300], [100, 120, 140, 160, 180]
    for top in tops:
        page.across(top, 160 if top == 120 else 60, 300)
    for left in lefts:
        page.down(left, 120 if left == 230 else 100, 180)
    page.text(64, 104, "Region")
    page.centred(230, 104, "Sales")
    for left, text in zip((164, 234), ("2024", "2025"), strict=True):
        page.text(left, 124, text)
    for top, row in ((144, ("North", "1.5", "2.5")), (164, ("South", "3.5", "4.5"))):
        for left, text in zip((64, 164, 234), row, strict=True):
            page.text(left, top, text)

    (table,) = tables(page.save())

    assert labels(table) == ["Region", "Sales 2024", "Sales 2025"]
    assert texts(table) == [["North", "1.5", "2.5"], ["South", "3.5", "4.5"]]


def test_a_header_over_a_shorter_line_is_above_these_columns(page):
    page.across(98, 58, 370)
    page.centred(290, 100, "Sales in euros")
    page.across(114, 220, 365)
    unruled(page, top=116, head=("Region", "North", "South"))
    for top in (131, 191):
        page.across(top, 58, 370)

    (grid,) = grids(page.save())

    (spanning,) = (cell for cell in grid.cells if cell.right > cell.left)
    assert (spanning.text, spanning.left, spanning.right, spanning.top) == ("Sales in euros", 1, 2, 0)
    (region,) = (cell for cell in grid.cells if cell.text == "Region")
    assert (region.top, region.bottom) == (0, 1)


def test_a_text_over_several_rows_is_in_each_of_them(page):
    lefts, tops = [60, 160, 230, 300], [100, 120, 140, 160]
    page.grid(lefts, [100, 120, 160])
    page.across(140, 160, 300)
    rows = (("Region", "Year", "Sales"), ("North", "2024", "1.5"), ("", "2025", "2.5"))
    for top, row in zip(tops, rows, strict=False):
        for left, text in zip(lefts, row, strict=False):
            page.text(left + 4, top + 4, text)

    (table,) = tables(page.save())

    assert texts(table) == [["North", "2024", "1.5"], ["North", "2025", "2.5"]]


def test_the_lines_of_a_text_in_a_cell_stay_together(page):
    page.grid([60, 160, 360], [100, 120, 160, 200])
    for top, row in (
        (104, ("Word", "Meaning")),
        (124, ("Ledger", "A book in which")),
        (164, ("Voucher", "A paper that")),
    ):
        page.text(64, top, row[0])
        page.text(164, top, row[1])
    page.text(164, 138, "accounts are kept")
    page.text(164, 178, "shows a payment")

    (table,) = tables(page.save())

    assert texts(table) == [
        ["Ledger", "A book in which\naccounts are kept"],
        ["Voucher", "A paper that\nshows a payment"],
    ]


def test_titles_of_parts_and_gaps_are_within_a_table_without_borders(page):
    unruled(page)
    page.text(60, 190, "From abroad")
    for number, row in enumerate(GOODS):
        for end, text in zip((None, 260, 360), row, strict=True):
            top = 205 + 15 * number
            page.text(60, top, text) if end is None else page.right(end, top, text)

    (table,) = tables(page.save())

    assert texts(table) == [*GOODS, ["From abroad", "", ""], *GOODS]


def test_two_tables_next_to_each_other_are_two_tables(page):
    ruled(page, left=40)
    ruled(page, left=320, rows=GOODS[:2])

    one, other = tables(page.save())

    assert (texts(one), texts(other)) == (GOODS, GOODS[:2])


def test_two_tables_below_each_other_with_text_between_are_two_tables(page):
    unruled(page)
    page.text(60, 220, PROSE[:80])
    unruled(page, top=260, rows=GOODS[1:])

    one, other = tables(page.save())

    assert (texts(one), texts(other)) == (GOODS, GOODS[1:])


@pytest.mark.parametrize("degrees", [90, 180, 270])
def test_a_rotated_page_is_read_as_people_see_it(tmp_path, degrees):
    page = Page(tmp_path / "page.pdf")
    with page.pdf.rotation(degrees, x=page.pdf.w / 2, y=page.pdf.h / 2):
        ruled(page, left=200, top=350)
    page.save()
    content = page.path.read_bytes().replace(b"/Type /Page\n", b"/Type /Page\n/Rotate %d\n" % degrees, 1)
    page.path.write_bytes(content)

    (table,) = tables(page.path)

    assert texts(table) == GOODS


def test_the_dots_to_a_value_are_not_part_of_the_text(page):
    for number, (name, value) in enumerate((("Rent", "1,200"), ("Heat", "310"), ("Water", "95"), ("Refuse", "61"))):
        page.text(60, 100 + 15 * number, f"{name} {'. .' if number % 2 else '........................'}")
        page.right(260, 100 + 15 * number, value)
        page.right(340, 100 + 15 * number, value)

    (table,) = tables(page.save())

    assert [row[0] for row in texts(table)] == ["Rent", "Heat", "Water", "Refuse"]


def test_a_title_and_notes_in_the_frame_of_a_table_are_not_rows(page):
    ruled(page, top=120)
    for top in (100, 240):
        page.across(top, 60, 300)
    for left in (60, 300):
        page.down(left, 100, 240)
    page.text(120, 104, "Table 1. Prices of fruit")
    page.text(64, 224, "Source: market of 1 May, without deposit")

    (table,) = tables(page.save())

    assert (labels(table), texts(table)) == (["Article", "Quantity", "Price"], GOODS)


def test_a_table_goes_on_on_the_next_page_if_its_columns_do(page):
    long = [[f"Part {number}", str(number), f"{number}.50"] for number in range(36)]
    ruled(page, top=40, rows=long)
    page.pdf.add_page()
    ruled(page, top=40, rows=GOODS)

    (table,) = tables(page.save())

    assert texts(table) == [*long, *GOODS]
    assert [row[0]["page"] for row in (table["rows"][0], table["rows"][-1])] == [1, 2]


def test_a_table_with_other_columns_on_the_next_page_is_another_one(page):
    long = [[f"Part {number}", str(number), f"{number}.50"] for number in range(36)]
    ruled(page, top=40, rows=long)
    page.pdf.add_page()
    ruled(page, top=40, head=("Item", "Count", "Cost"))

    assert [len(table["rows"]) for table in tables(page.save())] == [36, 4]
