"""Whatever a page has on it, its tables can be stored."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ade_understanding.tables.data import Tables
from documents import tables

pytestmark = pytest.mark.once

# Few different places, so that words and lines touch, overlap and line up.
places = st.sampled_from([number / 24 for number in range(25)]) | st.floats(0, 1)
texts = st.sampled_from(["1", "12.5", "-", "•", "....", "Total:", "a", "€", "2025", "1,5 €", "\u202e", "word", "Ⅻ"])


@st.composite
def words(draw):
    left, top = draw(places), draw(places)
    wide, high = draw(st.sampled_from([0.0, 0.01, 0.04, 0.3])), draw(st.sampled_from([0.0, 0.01, 0.012, 0.2]))
    return [draw(texts), left, top, min(left + wide, 1.0), min(top + high, 1.0)]


@st.composite
def lines(draw):
    one, other, at = draw(places), draw(places), draw(places)
    start, end = min(one, other), max(one, other)
    return [start, at, end, at] if draw(st.booleans()) else [at, start, at, end]


@settings(max_examples=400)
@given(
    st.lists(st.tuples(st.lists(words(), max_size=60), st.lists(lines(), max_size=25)), max_size=3),
    st.sampled_from([(595.0, 842.0), (1.0, 1.0), (14_400.0, 3.0), (1700.0, 2200.0)]),
)
def test_any_words_and_lines(pages, size):
    found = Tables()
    for number, (page_words, page_lines) in enumerate(pages, 1):
        found.add_page(number, page_words, page_lines, size, [])

    result = found.result()

    assert len([line for line in tables.lines(result) if "name" in line]) == len(result)
    for table in result:
        assert all(len(row) == len(table["columns"]) for row in table["rows"])


@settings(max_examples=200)
@given(st.lists(st.lists(texts | st.text(max_size=5), max_size=6), max_size=8))
def test_any_rows_of_a_file(rows):
    found = Tables()
    found.add_page(1, [], [], (None, None), [{"rows": rows, "box": None}])

    for table in found.result():
        stored = list(tables.lines([table]))
        assert stored[0]["row_count"] == len(table["rows"]) <= len(rows)
