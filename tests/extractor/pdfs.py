"""PDFs: valid ones made with fpdf2, and hand-made ones."""

import zlib

from fpdf import FPDF

WORDS = ["invoice", "amount", "the", "of", "and", "customer", "number", "total", "payment", "within", "days"]


def pdf_of(path, *texts, **page):
    """Write a PDF with a page for each text."""
    pdf = FPDF()
    pdf.set_font("Helvetica", size=12)
    for text in texts:
        pdf.add_page(**page)
        pdf.multi_cell(0, 6, text)
    pdf.output(str(path))
    return path


def long_pdf(path, pages, words=450):
    texts = (f"Page {n}. " + " ".join(WORDS[(n + i) % len(WORDS)] for i in range(words)) for n in range(1, pages + 1))
    return pdf_of(path, *texts)


def by_hand(objects, trailer="", *, root=1):
    """Write a file with these objects, numbered from 1, and a cross-reference table."""
    parts, places = [b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"], []
    for number, each in enumerate(objects, 1):
        places.append(sum(map(len, parts)) if len(objects) < 1000 else 0)
        parts.append(b"%d 0 obj\n%b\nendobj\n" % (number, bytes_of(each)))
    if len(objects) >= 1000:
        place = len(parts[0])
        for index, part in enumerate(parts[1:]):
            places[index] = place
            place += len(part)
    start = sum(map(len, parts))
    table = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1) + b"".join(
        b"%010d 00000 n \n" % each for each in places
    )
    end = b"trailer\n<</Size %d/Root %d 0 R%b>>\nstartxref\n%d\n%%%%EOF\n" % (
        len(objects) + 1,
        root,
        bytes_of(trailer),
        start,
    )
    return b"".join(parts) + table + end


def bytes_of(value):
    return value.encode("latin-1") if isinstance(value, str) else value


def stream(data, extra="", *, length=None):
    data = bytes_of(data)
    return b"<</Length %d%b>>\nstream\n%b\nendstream" % (len(data) if length is None else length, bytes_of(extra), data)


def bomb(content, size, times=1):
    """Return a stream that unpacks to this size and is compressed `times` times."""
    block = content * ((4 << 20) // len(content))
    pack = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = pack.compress(block) + pack.flush(zlib.Z_FULL_FLUSH)
    # Deflate blocks are independent after a full flush; no reader gets as far as the checksum.
    data = b"\x78\xda" + packed * (size // len(block)) + b"\x03\0" + bytes(4)
    for _ in range(times - 1):
        data = zlib.compress(data, 9)
    return stream(data, "/Filter[" + "/FlateDecode" * times + "]")


def with_content(content, *, page="/MediaBox[0 0 595 842]", catalog="", more=(), trailer=""):
    """Write one page with this content stream, and Helvetica as F1. The objects in `more` have numbers from 6."""
    return by_hand(
        [
            f"<</Type/Catalog/Pages 2 0 R{catalog}>>",
            "<</Type/Pages/Kids[3 0 R]/Count 1>>",
            f"<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>{page}>>",
            content,
            "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
            *more,
        ],
        trailer,
    )


def says(text):
    return stream(f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET")
