"""Pages as a scanner leaves them: drawn with fpdf2, rendered to images, and saved as files."""

import io
from difflib import SequenceMatcher
from importlib.util import find_spec
from itertools import cycle, islice
from shutil import which

import pypdfium2
import pytest
from fpdf import FPDF

from tests.extractor.extracting import NOBODY, PDF, extract
from tests.extractor.pdfs import WORDS, pdf_of

RAPIDOCR, TESSERACT = NOBODY
DOTS = 200 / 72

needs_rapidocr = pytest.mark.skipif(not find_spec("rapidocr"), reason="needs the packages of requirements/ocr.txt")
needs_tesseract = pytest.mark.skipif(not which("tesseract"), reason="needs tesseract on the PATH")


def letter(words=60):
    """Return a letter in which every line is different."""
    body = " ".join(f"{word} {100 + n}," for n, word in enumerate(islice(cycle(WORDS), words // 2)))
    return f"Invoice No. 2026-0417\n\nTo the customer\n\n{body}\n\nTotal: 1,234.56 EUR"


def images_of(file, dots=DOTS):
    """Render each page in greyscale."""
    document = pypdfium2.PdfDocument(file)
    found = [page.render(scale=dots, grayscale=True).to_pil() for page in document]
    document.close()
    return found


def image_of(path, text):
    (found,) = images_of(pdf_of(path, text))
    return found


def pdf_with(path, images, *, rotate=0, text=""):
    """Write a PDF with a page for each image, and a last page with the text if there is one."""
    pdf = FPDF(unit="pt")
    for each in images:
        width, height = each.width / DOTS, each.height / DOTS
        pdf.add_page(format=(width, height))
        pdf.image(each, 0, 0, width, height)
    if text:
        pdf.set_font("Helvetica", size=12)
        pdf.add_page()
        pdf.multi_cell(0, 14, text)
    path.write_bytes(bytes(pdf.output()))
    return turned(path, rotate) if rotate else path


def turned(path, degrees):
    """Set the rotation that viewers apply to the pages."""
    document = pypdfium2.PdfDocument(path)
    for page in document:
        page.set_rotation(degrees)
    data = io.BytesIO()
    document.save(data)
    document.close()
    path.write_bytes(data.getvalue())
    return path


def words_drawn(path, text):
    """Return words with their boxes, as the PDF reader returns them."""
    (page,) = extract(pdf_of(path, text), PDF, without=NOBODY).pages
    return page["words"]


def right(found, wanted):
    """Return pairs of equal words, in the same order in both lists."""
    matcher = SequenceMatcher(None, [word[0] for word in found], [word[0] for word in wanted], autojunk=False)
    return [(found[a + n], wanted[b + n]) for a, b, number in matcher.get_matching_blocks() for n in range(number)]


def share_right(text, wanted):
    found, wanted = ([(word,) for word in each.split()] for each in (text, wanted))
    return len(right(found, wanted)) / len(wanted)


def lies_within(found, wanted, most=0.012):
    """Return whether all four sides agree within `most`, as shares of the page."""
    return all(abs(a - b) <= most for a, b in zip(found[1:], wanted[1:], strict=True))
