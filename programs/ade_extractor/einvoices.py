"""Finds the e-invoice of a document: an XML file, or one that is attached to a PDF."""

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ade_understanding.einvoice.model import Invoice
from ade_understanding.einvoice.parsing import BadXml
from ade_understanding.einvoice.printed import Word
from ade_understanding.einvoice.problems import Problem
from ade_understanding.einvoice.reading import read
from ade_understanding.einvoice.understanding import Understanding, understand

PDF, XML = "application/pdf", "application/xml"
# The names that ZUGFeRD, Factur-X and XRechnung prescribe.
_NAMES = frozenset({"factur-x.xml", "zugferd-invoice.xml", "xrechnung.xml", "cii.xml"})


@dataclass
class Found:
    """The e-invoice of a document, or what is wrong with it."""

    invoice: Invoice | None = None
    problems: list[Problem] = field(default_factory=list)
    # Whether the pages are drawn from the e-invoice.
    is_drawn_from_it: bool = False
    # The words of the pages, collected while the pages are digested.
    pages: list[tuple[int, list[Word]]] = field(default_factory=list)

    def add_page(self, number: int, text: str, words: list[Word]) -> None:
        if self.invoice:
            self.pages.append((number, words or [[word] for word in text.split()]))

    def understand(self, page_fields: list[dict[str, Any]]) -> Understanding | None:
        problems = [problem.as_json() for problem in self.problems]
        if self.invoice is None:
            return Understanding(page_fields, [], None, problems) if problems else None
        found = understand(self.invoice, self.pages, page_fields, is_drawn_from_it=self.is_drawn_from_it)
        return found._replace(problems=[*problems, *found.problems])


def find(path: Path, content_type: str) -> Found:
    # Import readers by name, because most documents need none of the two.
    if content_type == XML:
        invoice = importlib.import_module("ade_extractor.xml_file").invoice_of(path)
        return Found(invoice, is_drawn_from_it=invoice is not None)
    if content_type == PDF:
        return _in_attachments(importlib.import_module("ade_extractor.attachments").of_pdf(path))
    return Found()


def _in_attachments(attachments: Iterable[tuple[str, Callable[[], bytes | None]]]) -> Found:
    found = Found()
    invoices: list[tuple[bool, str, bytes, Invoice]] = []
    for name, unpack in attachments:
        has_known_name = name.lower() in _NAMES
        if not has_known_name and not name.lower().endswith(".xml"):
            continue
        try:
            if (data := unpack()) is None:
                raise BadXml("it is damaged or too large")
            invoice = read(data)
        except BadXml as error:
            # Other XML files may be anything.
            if has_known_name:
                message = f"The e-invoice “{name}” inside this PDF cannot be read: {error}."
                found.problems.append(Problem("broken_e_invoice", "", message))
            continue
        if invoice:
            invoices.append((has_known_name, name, data, invoice))
        elif has_known_name:
            message = f"The file “{name}” inside this PDF is no e-invoice that ADE knows."
            found.problems.append(Problem("unknown_e_invoice", "", message))
    if invoices:
        known = [each for each in invoices if each[0]]
        _, name, data, found.invoice = (known or invoices)[0]
        if others := [other for _, other, content, _ in invoices if content != data]:
            message = f"This PDF has several e-invoices. The fields come from “{name}”, not from {_listed(others)}."
            found.problems.append(Problem("several_e_invoices", "", message))
    return found


def _listed(names: list[str]) -> str:
    return " and ".join(f"“{name}”" for name in names[:3])
