"""XML from strangers."""

import time

import pytest

from ade_understanding.einvoice import parsing
from ade_understanding.einvoice.parsing import BadXml, parse, root_name
from ade_understanding.einvoice.reading import read
from tests.einvoice import making

BILLION = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10 if n else "lol"}">' for n in range(10))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (f'<?xml version="1.0"?><!DOCTYPE a [{BILLION}]><a>&e9;</a>'.encode(), "document type or entities"),
        (b'<!DOCTYPE a SYSTEM "http://127.0.0.1/x.dtd"><a/>', "document type or entities"),
        (b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>', "document type or entities"),
        (b"<a>" * 100 + b"</a>" * 100, "nested more than 64 deep"),
        (b"<a>" * 100_000, "nested more than 64 deep"),
        (b"<a><b></a>", "not well-formed"),
        (b"<a>", "not well-formed"),
        (b"", "not well-formed"),
        (b"hello", "not well-formed"),
        (b'<?xml version="1.0" encoding="no-such-thing"?><a/>', "not well-formed"),
        (b'<?xml version="1.0" encoding="utf-8"?><a>\xff\xfe</a>', "not well-formed"),
        ("<a>ä</a>".encode("latin-1"), "not well-formed"),
        (b"<a>&undefined;</a>", "not well-formed"),
        (b"<a>\0</a>", "not well-formed"),
    ],
)
def test_hostile_and_broken_xml_is_refused_with_a_reason(data, reason):
    with pytest.raises(BadXml, match=reason):
        parse(data)


def test_too_many_elements_are_refused(monkeypatch):
    monkeypatch.setattr(parsing, "MOST_ELEMENTS", 1000)

    with pytest.raises(BadXml, match="more than 1,000 elements"):
        parse(b"<a>" + b"<b/>" * 1000 + b"</a>")


def test_a_huge_file_is_refused_before_it_is_parsed(monkeypatch):
    monkeypatch.setattr(parsing, "MOST_BYTES", 1000)

    with pytest.raises(BadXml, match="it has 1,001 bytes"):
        parse(b"<" * 1001)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1", "cp1252"])
def test_declared_encodings_are_read(encoding):
    xml = making.cii().replace('encoding="UTF-8"', f'encoding="{encoding.replace("-sig", "")}"')

    assert read(xml.encode(encoding)).seller.name == "Nagel & Söhne GmbH"


def test_attachments_are_not_kept_in_memory():
    content = "QUJD" * 1000
    xml = making.cii().replace(
        "<ram:BuyerOrderReferencedDocument>",
        "<ram:AdditionalReferencedDocument><ram:TypeCode>916</ram:TypeCode><ram:AttachmentBinaryObject>"
        f"{content}</ram:AttachmentBinaryObject></ram:AdditionalReferencedDocument><ram:BuyerOrderReferencedDocument>",
    )

    invoice = read(xml.encode())

    assert invoice.texts["order_number"] == "B-88"
    assert not any("QUJD" in leaf for leaf in invoice.leaves)


def test_a_large_invoice_is_read_in_proportion():
    """An invoice of 20 times the lines must not take much more than 20 times the processor time."""
    line = making._cii_line(1, "N-10", "Steel nails", "100", "0.0950", "9.50", "19.00")
    small, large = (making.cii().replace(line, line * times).encode() for times in (100, 2000))
    took = []
    for data in (small, large):
        started_at = time.process_time()
        invoice = read(data)
        took.append(time.process_time() - started_at)

    assert len(invoice.lines) == 2001
    assert took[1] < 100 * max(took[0], 0.005)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("<a/>", "a"),
        ('\ufeff<?xml version="1.0"?>\n<!-- x --><p:Invoice xmlns:p="y">', "Invoice"),
        ("<!-- " + "x" * 9000 + " --><a>", "a"),
        ("<!DOCTYPE a><a/>", ""),
        ("<!-- never ends", ""),
        ("text", ""),
    ],
)
def test_the_name_of_the_root_shows_at_the_beginning(text, name):
    assert root_name(text) == name
