"""Checks net, tax and gross of a document across its pages. A correct sum confirms them."""

from collections.abc import Sequence
from decimal import Decimal
from itertools import product
from typing import Any

from ade_extractor.rows import around
from ade_extractor.values import BARE, CHECKED

NET, TAX, GROSS = NAMES = ("net_total", "tax_total", "gross_total")
# The rounding of various countries.
TOLERANCE = Decimal("0.02")
# Candidates per name. A normal document has two or three.
_MOST = 20

Field = dict[str, Any]


def check(fields: Sequence[Field]) -> list[Field]:
    """Return the fields with a higher confidence if net and tax add up to gross, or a lower one if nothing adds up."""
    totals = [field for field in fields if _is_total(field)]
    nets, taxes, grosses = ([field for field in totals if field["name"] == name][:_MOST] for name in NAMES)
    if len(taxes) > 1 and all(tax["page"] == taxes[0]["page"] for tax in taxes):
        # The total tax of an invoice with several rates on separate lines.
        _, _, currency = taxes[0]["value"].partition(" ")
        total = sum((_value(tax) for tax in taxes), Decimal())
        boxes = [["", *tax["box"]] for tax in taxes if tax["box"]]
        taxes.append({**taxes[0], "value": f"{total} {currency}".strip(), "box": around(boxes)})
    if not (nets and taxes and grosses):
        return list(fields)
    for net, tax, gross in product(nets, taxes, grosses):
        if _value(gross) and abs(_value(net) + _value(tax) - _value(gross)) <= TOLERANCE:
            sure = [{**field, "confidence": CHECKED} for field in (net, tax, gross)]
            return [*(field for field in fields if not _is_total(field)), *sure]
    return [{**field, "confidence": min(field["confidence"], BARE)} if _is_total(field) else field for field in fields]


def _value(field: Field) -> Decimal:
    return Decimal(field["value"].partition(" ")[0])


def _is_total(field: Field) -> bool:
    """Return whether it is an amount of this name. Other services may use the name for any text."""
    return field["name"] in NAMES and field["kind"] == "amount"
