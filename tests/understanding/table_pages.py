"""Draws pages with fpdf2 and finds their tables, as the reader's process does."""

import json

from fpdf import FPDF

from ade_extractor import pdf
from ade_understanding.tables.data import Tables
from ade_understanding.tables.find import find

LINE = 14


class Page:
    def __init__(self, path, **page):
        self.path = path
        self.pdf = FPDF(unit="pt", format="A4")
        self.pdf.set_auto_page_break(False)
        self.pdf.set_font("Helvetica", size=10)
        self.pdf.add_page(**page)

    def text(self, left, top, text):
        self.pdf.text(left, top + 10, text)

    def right(self, right, top, text):
        self.text(right - self.pdf.get_string_width(text), top, text)

    def centred(self, centre, top, text):
        self.text(centre - self.pdf.get_string_width(text) / 2, top, text)

    def across(self, top, left, right):
        self.pdf.line(left, top, right, top)

    def down(self, left, top, bottom):
        self.pdf.line(left, top, left, bottom)

    def grid(self, lefts, tops):
        for top in tops:
            self.across(top, lefts[0], lefts[-1])
        for left in lefts:
            self.down(left, tops[0], tops[-1])

    def save(self):
        self.pdf.output(str(self.path))
        return self.path


def look(path):
    """Return number, words, rulings and size of each page."""
    for page in pdf.read(path, "application/pdf", 1, 1000).pages:
        page.place_words()
        yield page.number, json.loads(page.words), page.find_rulings(), (page.width, page.height)
    # The reader keeps the document open for the next page.
    pdf.open_document.cache_clear()


def grids(path):
    return [grid for _, words, rulings, size in look(path) for grid in find(words, rulings, *size)]


def tables(path):
    found = Tables()
    for number, words, rulings, size in look(path):
        found.add_page(number, words, rulings, size, [])
    return found.result()


def texts(table):
    return [[cell["text"] for cell in row] for row in table["rows"]]


def labels(table):
    return [column["label"] for column in table["columns"]]


def kinds(table):
    return [column["kind"] for column in table["columns"]]
