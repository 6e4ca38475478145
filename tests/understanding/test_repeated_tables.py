import pytest

from ade_understanding.tables.repeated import repeats

pytestmark = pytest.mark.once

DESCRIPTION, AMOUNT, EXTRA = (0.1, 0.4), (0.7, 0.8), (0.5, 0.6)


def table(*rows, page=1):
    """Return a table: each row is its top and, for each cell, the sides of its column, or None for an empty cell."""
    cells = [
        [
            {"text": "", "value": None, "page": None, "box": None}
            if sides is None
            else {"text": "1", "value": "1", "page": page, "box": [sides[0], top, sides[1], top + 0.01]}
            for sides in columns
        ]
        for top, *columns in rows
    ]
    return {"name": "", "rows": cells}


QUANTITY = (0.6, 0.65)
ITEMS = table((0.3, DESCRIPTION, AMOUNT), (0.4, DESCRIPTION, AMOUNT), (0.5, DESCRIPTION, AMOUNT))


def test_a_table_of_the_same_columns_repeats_the_line_items():
    address, total = (0.1, DESCRIPTION, EXTRA), (0.6, EXTRA, AMOUNT)

    assert repeats(table(address, (0.3, DESCRIPTION, AMOUNT), (0.45, DESCRIPTION, None), total), ITEMS)


@pytest.mark.parametrize(
    "other",
    [
        table((0.3, DESCRIPTION, EXTRA, AMOUNT), (0.4, DESCRIPTION, EXTRA, AMOUNT)),
        table((0.6, DESCRIPTION, AMOUNT), (0.7, DESCRIPTION, AMOUNT)),
        table((0.3, DESCRIPTION, AMOUNT), (0.4, DESCRIPTION, AMOUNT), page=2),
        table((0.3, None, None)),
    ],
    ids=["another column", "below them", "another page", "empty"],
)
def test_a_table_with_anything_else_is_kept(other):
    assert not repeats(other, ITEMS)


LINE = (DESCRIPTION, QUANTITY, AMOUNT)
LINES = [(0.3, *LINE), (0.32, *LINE)]


@pytest.mark.parametrize("top", [0.2, 0.6], ids=["above", "below"])
def test_a_table_with_one_more_line_than_the_line_items_is_kept(top):
    many = [(0.3 + n / 1000, *LINE) for n in range(100)]

    assert repeats(table(*many), table(*many))
    assert not repeats(table(*many, (top, *LINE)), table(*many))
    assert repeats(table(*many, (top, DESCRIPTION, None, AMOUNT)), table(*many))


def test_a_table_that_goes_on_on_a_page_without_line_items_is_kept():
    both = table(*LINES)
    both["rows"] += table(*LINES, page=2)["rows"]

    assert repeats(table(*LINES), table(*LINES))
    assert not repeats(both, table(*LINES))


def test_line_items_without_places_and_none_are_repeated_by_nothing():
    assert not repeats(ITEMS, None)
    assert not repeats(ITEMS, table((0.3, None, None)))
