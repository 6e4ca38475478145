"""An invoice as ADE has understood it, with numbers to calculate with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation

from ade_engine.context import Document
from ade_engine.understood import Cell

NET, TAX, GROSS = TOTALS = ("net_total", "tax_total", "gross_total")
LINE_ITEMS = "line_items"


@dataclass(frozen=True)
class Item:
    # The number of the row, from 1.
    row: int
    quantity: Decimal | None
    unit_price: Decimal | None
    amount: Decimal | None


class Invoice:
    def __init__(self, document: Document, computed: Mapping[str, tuple[str, float]] | None = None) -> None:
        self._document = document
        # What runs have published, this one computes again: what it was computed from may have changed.
        self._fields = {name: field for name, field in document.fields.items() if not field.source.startswith("run ")}
        # Values with their confidence.
        self._computed = dict(computed or {})
        self.type = document.type.name if document.type else ""
        self.number = self.text("invoice_number")
        table = document.tables.get(LINE_ITEMS)
        self.rows = table.rows if table else []
        self.items = [_item(number, row) for number, row in enumerate(self.rows, 1)]

    def values(self) -> dict[str, str]:
        """Return all fields with their values, with those that were computed."""
        return {name: self.text(name) for name in {**self._fields, **self._computed}}

    def text(self, name: str) -> str:
        if name in self._computed:
            return self._computed[name][0]
        field = self._fields.get(name)
        return field.value if field else ""

    def amount(self, name: str) -> Decimal | None:
        """Return the number in an amount such as `1511.30 EUR`."""
        return _number(self.text(name))

    def day(self, name: str) -> date | None:
        try:
            return date.fromisoformat(self.text(name))
        except ValueError:
            return None

    def confidence(self, name: str) -> float:
        if name in self._computed:
            return self._computed[name][1]
        field = self._fields.get(name)
        return (field.confidence if field else None) or 0.0

    @property
    def total(self) -> Decimal | None:
        """What is to be paid: the amount due, which may differ from the gross total after a prepayment."""
        due = self.amount("due_amount")
        return self.amount(GROSS) if due is None else due

    @property
    def currency(self) -> str:
        return self.text("currency") or next((self.text(name)[-3:] for name in TOTALS if " " in self.text(name)), "")

    def money(self, value: Decimal) -> str:
        return f"{value:.2f} {self.currency}".strip()

    def tax_rates(self) -> dict[Decimal, tuple[Decimal, Decimal]]:
        """Return the net amount and the tax by rate, from fields such as `tax_base_19` and `tax_amount_7_7`."""
        rates = {}
        for name in self._fields:
            if name.startswith("tax_base_"):
                suffix = name.removeprefix("tax_base_")
                rate = _number(suffix.replace("_", "."))
                base, tax = self.amount(name), self.amount(f"tax_amount_{suffix}")
                if rate is not None and base is not None and tax is not None:
                    rates[rate] = (base, tax)
        return rates

    def missing_total(self) -> tuple[str, Decimal, float] | None:
        """Return name, value and confidence of the one of net, tax and gross that can be computed from the others."""
        known = [name for name in TOTALS if self.amount(name) is not None]
        if len(known) != 2:
            return None
        (name,) = {*TOTALS} - {*known}
        net, tax, gross = (self.amount(each) or Decimal() for each in TOTALS)
        value = {NET: gross - tax, TAX: gross - net, GROSS: net + tax}[name]
        # Both must be right, so the result is no surer than both together.
        return name, value, round(self.confidence(known[0]) * self.confidence(known[1]), 2)

    def with_value(self, name: str, value: str, confidence: float) -> Invoice:
        return Invoice(self._document, {**self._computed, name: (value, confidence)})


def _item(row: int, cells: Mapping[str, Cell]) -> Item:
    quantity, unit_price, amount = (
        _number((cells[name].value or "") if name in cells else "") for name in ("quantity", "unit_price", "amount")
    )
    return Item(row, quantity, unit_price, amount)


def _number(text: str) -> Decimal | None:
    try:
        value = Decimal(text.split(" ")[0])
    except InvalidOperation:
        return None
    return value if value.is_finite() else None
