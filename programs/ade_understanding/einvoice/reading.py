"""Reads an e-invoice of any syntax."""

from xml.etree.ElementTree import Element

from ade_understanding.einvoice import cii, fattura, ubl
from ade_understanding.einvoice.model import Invoice
from ade_understanding.einvoice.parsing import all_texts, parse


def read(data: bytes) -> Invoice | None:
    """Return the invoice, or None if the XML is something else. Raises BadXml."""
    return of_root(parse(data))


def of_root(root: Element) -> Invoice | None:
    invoice = None
    if root.tag in cii.ROOTS:
        invoice = cii.read(root)
    elif root.tag in ubl.ROOTS and root.get("xmlns") in ubl.NAMESPACES:
        invoice = ubl.read(root)
    elif root.tag in fattura.ROOTS:
        invoice = fattura.read(root)
    if invoice:
        invoice.leaves = [text for _, text in all_texts(root)]
    return invoice
