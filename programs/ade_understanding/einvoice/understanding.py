"""What a document is understood to be, if it has an e-invoice."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

from ade_understanding.einvoice import checks, fields, sheet
from ade_understanding.einvoice.comparison import FREE_TEXTS, SOURCE, SURE, UNSURE, Header, agrees
from ade_understanding.einvoice.model import Invoice
from ade_understanding.einvoice.printed import Printed, Word
from ade_understanding.einvoice.records import Records

# A page that shows hardly any line of the e-invoice shows another invoice.
MOST_OF_LINES = 50


class Understanding(NamedTuple):
    fields: list[dict[str, Any]]
    tables: list[dict[str, Any]]
    type: dict[str, Any] | None
    problems: list[dict[str, Any]]


def understand(
    invoice: Invoice,
    pages: Iterable[tuple[int, Sequence[Word]]],
    page_fields: Sequence[dict[str, Any]] = (),
    *,
    is_drawn_from_it: bool = False,
) -> Understanding:
    """Return all values of the e-invoice with their places, followed by what the recogniser has read on the pages.

    Pages that are drawn from the e-invoice itself are not compared with it.
    """
    if is_drawn_from_it and invoice.others:
        # The pages of the first invoice.
        pages = islice(pages, len(sheet.draw(replace(invoice, others=[]))))
    printed = Printed(pages)
    header = Header(invoice, printed, page_fields)
    tables = fields.tables(invoice)
    records = Records(invoice, printed, header.explained, tables)
    records.locate()
    problems = checks.check(invoice)
    if not is_drawn_from_it and printed.has_words:
        problems += [*header.problems(), *islice(records.problems(), MOST_OF_LINES)]
    found = [
        {
            "name": item.name,
            "value": item.value,
            "kind": item.kind,
            "confidence": 1,
            "page": place.page.number if place else None,
            "box": place.box if place else None,
            "source": SOURCE,
            "reason": item.reason,
        }
        for item, place in header.located.values()
    ]
    read = [_reconciled(each, header) for each in page_fields]
    return Understanding([*found, *read], tables, fields.type_of(invoice), [each.as_json() for each in problems])


def _reconciled(read: dict[str, Any], header: Header) -> dict[str, Any]:
    """Return a value of the recogniser: as the e-invoice writes it if they agree, and unsure if it is a mistake.

    It is one if the e-invoice's own value is printed, and the one of the recogniser is another value of the e-invoice.
    """
    located = header.located.get(read["name"])
    if located is None:
        return read
    item, place = located
    if agrees(item.kind, item.value, read["value"]):
        return read | {"value": item.value}
    is_mistake = place is not None and header.explained.has(item.kind, read["value"])
    is_mistake |= item.name in FREE_TEXTS
    if not is_mistake or (read["confidence"] or 0) < SURE:
        return read
    reason = f"{read.get('reason') or ''} The e-invoice gives another value, which is printed too.".strip()
    return read | {"confidence": UNSURE, "reason": reason}
