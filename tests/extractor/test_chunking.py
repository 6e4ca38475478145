import pytest
from hypothesis import given
from hypothesis import strategies as st

from ade_extractor import chunking
from ade_extractor.chunking import LONGEST, chunks

pytestmark = [pytest.mark.once, pytest.mark.long]


def test_short_paragraphs_of_a_page_share_a_chunk():
    assert [chunk.text for chunk in chunks([(1, "A title\n\nA line.\n\nAnother.")])] == [
        "A title\n\nA line.\n\nAnother."
    ]


def test_no_chunk_goes_over_the_end_of_a_page():
    found = chunks([(1, "first"), (2, "second"), (4, "fourth")])

    assert [(chunk.position, chunk.page, chunk.text) for chunk in found] == [
        (0, 1, "first"),
        (1, 2, "second"),
        (2, 4, "fourth"),
    ]


def test_paragraphs_are_kept_whole_where_they_fit():
    paragraphs = [f"{n} " + "word " * 80 for n in range(5)]

    found = chunks([(1, "\n\n".join(paragraphs))])

    assert [chunk.text.count("\n\n") + 1 for chunk in found] == [2, 2, 1]
    assert "\n\n".join(chunk.text for chunk in found).split("\n\n") == [each.strip() for each in paragraphs]


def test_a_long_paragraph_is_cut_between_sentences():
    sentences = [f"Sentence number {n} says something that takes some room in a line." for n in range(40)]

    found = chunks([(1, " ".join(sentences))])

    assert len(found) > 2
    assert all(chunk.text.endswith(".") for chunk in found)
    assert " ".join(chunk.text for chunk in found) == " ".join(sentences)


def test_a_long_table_is_cut_between_rows():
    rows = [f"{n}\tan article. It has a name\t{n * 7}.00" for n in range(100)]

    found = chunks([(1, "\n".join(rows))])

    assert len(found) > 2
    assert "\n".join(chunk.text for chunk in found).split("\n") == rows


@pytest.mark.parametrize("text", ["", " \n\n \n", "\t"])
def test_a_page_without_text_has_no_chunks(text):
    assert chunks([(1, text)]) == []


@given(st.lists(st.text(max_size=3000), max_size=4))
def test_nothing_is_lost_and_nothing_is_too_long(pages):
    found = chunks(list(enumerate(pages, 1)))

    assert all(0 < len(chunk.text) <= LONGEST for chunk in found)
    assert [chunk.position for chunk in found] == list(range(len(found)))
    for number, page in enumerate(pages, 1):
        kept = "".join(chunk.text for chunk in found if chunk.page == number)
        assert "".join(kept.split()) == "".join(page.split())


def test_a_word_without_an_end_is_cut():
    found = chunks([(1, "x" * (3 * chunking.LONGEST + 1))])

    assert [len(chunk.text) for chunk in found] == [LONGEST, LONGEST, LONGEST, 1]
