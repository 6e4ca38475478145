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
            else {"text": "x", "value": "x", "page": page, "box": [sides[0], top, sides[1], top + 0.01]}
            for sides in columns
        ]
        for top, *columns in rows
    ]
    return {"name": "", "rows": cells}


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


def test_line_items_without_places_and_none_are_repeated_by_nothing():
    assert not repeats(ITEMS, None)
    assert not repeats(ITEMS, table((0.3, None, None)))
