"""What is recognised on drawn papers whose seeds the weights were not fitted on."""

import random
from collections import Counter, defaultdict
from functools import cache

import pytest

from ade_understanding.recognition import recognise
from tests.understanding.drawing.layouts import LAYOUTS, invoice
from tests.understanding.drawing.others import KINDS
from tests.understanding.drawing.sheets import scanned
from tests.understanding.drawing.wording import LANGUAGES

pytestmark = [pytest.mark.once, pytest.mark.long]
# Per language and layout.
PAPERS = 3
# Values that a person would compare without their punctuation.
IGNORED = str.maketrans("", "", " ,.")


def is_same(one, other):
    return one.casefold().translate(IGNORED) == other.casefold().translate(IGNORED)


@cache
def judged(language):
    """Return for each recognised field its confidence and whether it is right, and for each printed one whether it is
    found.
    """
    said, found = [], []
    for layout in LAYOUTS:
        for seed in range(PAPERS):
            paper = invoice(f"test{seed}", language, layout)
            fields = {each["name"]: each for each in recognise(paper.pages).fields if not each.get("other")}
            for name, field in fields.items():
                said.append((field["confidence"], name in paper.truth and is_same(field["value"], paper.truth[name])))
            for name, value in paper.truth.items():
                found.append((name, name in fields and is_same(fields[name]["value"], value)))
    return said, found


@pytest.mark.parametrize("language", LANGUAGES)
def test_most_printed_values_are_found_and_right(language):
    said, found = judged(language)

    assert sum(right for _, right in found) / len(found) >= 0.85
    assert sum(right for _, right in said) / len(said) >= 0.95


def test_a_confidence_holds_what_it_says():
    tenths = defaultdict(list)
    for language in LANGUAGES:
        for confidence, right in judged(language)[0]:
            tenths[min(int(10 * confidence), 9)].append((confidence, right))

    sure = tenths.pop(9)
    assert sum(right for _, right in sure) / len(sure) >= 0.98
    for part in tenths.values():
        if len(part) >= 50:
            right = sum(right for _, right in part) / len(part)
            said = sum(confidence for confidence, _ in part) / len(part)
            assert abs(right - said) <= 0.1


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_total_of_a_receipt(language):
    counts = Counter()
    for seed in range(12):
        paper = KINDS["receipt"](f"test{seed}", language)
        fields = {each["name"]: each["value"] for each in recognise(paper.pages).fields}
        total = fields.get("gross_total", "").partition(" ")[0]
        counts["right" if total == paper.truth["gross_total"].partition(" ")[0] else "wrong" if total else "none"] += 1

    assert counts["right"] >= 7
    assert counts["wrong"] <= 3


@pytest.mark.parametrize("language", LANGUAGES)
def test_prose_has_hardly_any_fields(language):
    fields = [
        each
        for seed in range(10)
        for each in recognise(KINDS["prose"](f"test{seed}", language).pages).fields
        if not each.get("other")
    ]

    assert len(fields) <= 5


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_type_of_a_paper(language):
    papers = [invoice(f"test{seed}", language) for seed in range(10)]
    papers += [draw(f"test{seed}", language) for name, draw in KINDS.items() if name != "prose" for seed in range(3)]

    wrong = [
        (paper.type, kind["name"]) for paper in papers if (kind := recognise(paper.pages).type)["name"] != paper.type
    ]

    assert len(wrong) <= len(papers) / 5, wrong


def test_a_page_that_lies_askew_is_read_too():
    paper = invoice("scan", "de", "letter")
    pages = [scanned(page, random.Random(1), share=0) for page in paper.pages]
    fields = {each["name"]: each["value"] for each in recognise(pages).fields}

    assert fields["invoice_number"] == paper.truth["invoice_number"]
    assert fields["gross_total"] == paper.truth["gross_total"]
