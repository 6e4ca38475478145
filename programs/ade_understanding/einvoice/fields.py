"""Turns an e-invoice into fields and tables."""

from collections import defaultdict
from decimal import Decimal
from typing import Any, NamedTuple

from ade_understanding.einvoice import codes
from ade_understanding.einvoice.dates import is_day
from ade_understanding.einvoice.model import Amount, Invoice, Line, Party
from ade_understanding.einvoice.printed import number_of
from ade_understanding.einvoice.values import amount, decimal, plain
from ade_understanding.vocabulary import FIELDS, LINE_COLUMNS, OF_E_INVOICES, TAX_AMOUNT, TAX_BASE, rate_name

# Rows of a table that are kept.
MOST_ROWS = 5000
KINDS = FIELDS | OF_E_INVOICES
TAX_COLUMNS = {"category": "text", "rate": "decimal", "base": "amount", "amount": "amount", "exemption": "text"}
ALLOWANCE_COLUMNS = {"type": "text", "reason": "text", "tax_rate": "decimal", "amount": "amount"}
# The business terms of EN 16931 that give the fields.
_TERMS = {
    "invoice_number": 1, "invoice_date": 2, "currency": 5, "tax_currency": 6, "tax_date": 7, "due_date": 9,
    "buyer_reference": 10, "project_number": 11, "contract_number": 12, "order_number": 13, "sales_order_number": 14,
    "receiving_advice_number": 15, "delivery_note_number": 16, "tender_number": 17, "object_number": 18,
    "accounting_reference": 19, "payment_terms": 20, "note": 22, "business_process": 23, "profile": 24,
    "preceding_invoice_number": 25, "preceding_invoice_date": 26, "seller": 27, "seller_trading_name": 28,
    "seller_id": 29, "seller_global_id": 29, "seller_registration": 30, "vat_id": 31, "tax_number": 32,
    "seller_legal_information": 33, "seller_electronic_address": 34, "seller_address": 35, "seller_contact": 41,
    "phone": 42, "email": 43, "buyer": 44, "buyer_trading_name": 45, "customer_number": 46, "buyer_global_id": 46,
    "buyer_registration": 47, "buyer_vat_id": 48, "buyer_electronic_address": 49, "buyer_address": 50,
    "buyer_contact": 56, "buyer_phone": 57, "buyer_email": 58, "payee": 59, "payee_id": 60, "tax_representative": 62,
    "tax_representative_vat_id": 63, "tax_representative_address": 64, "recipient": 70, "recipient_id": 71,
    "delivery_date": 72, "period_start": 73, "period_end": 74, "recipient_address": 75, "payment_means": 81,
    "payment_reference": 83, "iban": 84, "account_number": 84, "account_name": 85, "bic": 86, "card_number": 87,
    "mandate_reference": 89, "creditor_id": 90, "debited_iban": 91, "line_total": 106, "allowance_total": 107,
    "charge_total": 108, "net_total": 109, "tax_total": 110, "tax_total_in_tax_currency": 111, "gross_total": 112,
    "prepaid_amount": 113, "rounding_amount": 114, "due_amount": 115,
}  # fmt: skip


class Item(NamedTuple):
    """A value of the e-invoice."""

    name: str
    kind: str
    value: str
    reason: str


def items(invoice: Invoice) -> list[Item]:
    """Return all values of the header, in the order of the vocabulary. A value without a name of its own is numbered,
    such as `iban_2`.
    """
    values = {
        **invoice.texts,
        **invoice.dates,
        **{name: amount(each) for name, each in invoice.amounts.items()},
        "profile": invoice.profile,
        "currency": invoice.currency,
        **_parties(invoice),
    }
    found = [_item(invoice, name, KINDS[name], values[name]) for name in KINDS if values.get(name)]
    for number, account in enumerate(invoice.accounts, 1):
        suffix = "" if number == 1 else f"_{number}"
        parts = {"iban": account.iban, "account_number": account.number, "account_name": account.name}
        for name, value in {**parts, "bic": account.bic}.items():
            if value:
                found.append(_item(invoice, f"{name}{suffix}", KINDS[name], value))
    for number, (day, part, _) in enumerate(invoice.instalments, 2):
        if day:
            found.append(_item(invoice, f"due_date_{number}", "date", day))
        if part:
            found.append(_item(invoice, f"due_amount_{number}", "amount", amount(part)))
    return [*found, *_tax_items(invoice)]


def tables(invoice: Invoice) -> list[dict[str, Any]]:
    """Return the tables of lines, of tax, and of allowances and charges of the document, without places."""
    lines = [_line_cells(line) for line in invoice.lines]
    taxes = [
        [_cell(each.category), *map(_number_cell, (each.rate, each.base, each.amount)), _cell(each.exemption)]
        for each in invoice.taxes
    ]
    allowances = [
        [
            _cell("charge" if each.is_charge else "allowance"),
            _cell(each.reason),
            *map(_number_cell, (each.rate, each.amount)),
        ]
        for each in invoice.allowances
    ]
    return [
        *([_table("line_items", LINE_COLUMNS, lines)] if lines else []),
        *([_table("tax_breakdown", TAX_COLUMNS, taxes)] if taxes else []),
        *([_table("allowances_and_charges", ALLOWANCE_COLUMNS, allowances)] if allowances else []),
    ]


def type_of(invoice: Invoice) -> dict[str, Any]:
    code = f" with the type code {invoice.type_code}" if invoice.type_code else ""
    name = "credit_note" if invoice.is_credit_note else "invoice"
    return {"name": name, "confidence": 1, "reason": f"It is an e-invoice ({invoice.syntax}){code}."}


def label_of(name: str) -> str:
    """Return the name of a field or column for people."""
    prefix = next((each for each in (TAX_BASE, TAX_AMOUNT) if name.startswith(each)), "")
    rate = name.removeprefix(prefix).replace("_", ".") if prefix else ""
    words = f"{prefix}{rate} %".replace("_", " ") if prefix else name.replace("_", " ")
    for short, long in (("iban", "IBAN"), ("bic", "BIC"), ("vat", "VAT"), (" id", " ID")):
        words = words.replace(short, long)
    return words[:1].upper() + words[1:]


def _item(invoice: Invoice, name: str, kind: str, value: str) -> Item:
    base = name.rstrip("0123456789").rstrip("_") if name not in _TERMS else name
    term = f" (BT-{_TERMS[base]})" if base in _TERMS and invoice.syntax != "FatturaPA" else ""
    reason = f"The XML of the e-invoice{term}."
    if name in invoice.computed:
        reason = "The sum of amounts in the XML of the e-invoice."
    # A date or an amount that is none stays readable, but has no such kind.
    is_bad = (kind == "date" and not is_day(value)) or (kind == "amount" and number_of(value) is None)
    return Item(name, "text" if is_bad else kind, value, reason)


def _parties(invoice: Invoice) -> dict[str, str]:
    seller, buyer, payee = invoice.seller, invoice.buyer, invoice.payee
    representative, recipient = invoice.tax_representative, invoice.recipient
    return {
        **_named(
            "seller_", seller, "trading_name", "id", "global_id", "registration", "legal_information",
            "electronic_address", "contact",
        ),
        **_named("buyer_", buyer, "trading_name", "global_id", "registration", "electronic_address", "contact"),
        **_named("buyer_", buyer, "phone", "email", "vat_id", "tax_number"),
        **_named("", seller, "vat_id", "tax_number", "phone", "fax", "email"),
        "seller": seller.name,
        "seller_address": seller.full_address,
        "buyer": buyer.name,
        "buyer_address": buyer.full_address,
        "customer_number": buyer.id,
        "payee": payee.name,
        "payee_id": payee.id or payee.global_id,
        "tax_representative": representative.name,
        "tax_representative_address": representative.full_address,
        "tax_representative_vat_id": representative.vat_id,
        "recipient": recipient.name,
        "recipient_id": recipient.id or recipient.global_id,
        "recipient_address": recipient.full_address,
    }  # fmt: skip


def _named(prefix: str, party: Party, *names: str) -> dict[str, str]:
    return {f"{prefix}{name}": getattr(party, name) for name in names}


def _tax_items(invoice: Invoice) -> list[Item]:
    """Return base and tax of each rate. Categories of the same rate are added."""
    sums: dict[str, Decimal] = defaultdict(Decimal)
    counts: dict[str, int] = defaultdict(int)
    currencies: dict[str, str] = {}
    for tax in invoice.taxes:
        if tax.rate is None or tax.rate.value is None:
            continue
        for prefix, part in ((TAX_BASE, tax.base), (TAX_AMOUNT, tax.amount)):
            if part is not None and part.value is not None:
                name = rate_name(prefix, plain(tax.rate.value))
                sums[name] += part.value
                counts[name] += 1
                currencies[name] = part.currency
    return [
        Item(
            name,
            "amount",
            amount(Amount("", value, currencies[name])),
            "The XML of the e-invoice (BG-23)."
            if counts[name] == 1
            else f"The sum of {counts[name]} tax categories in the XML of the e-invoice.",
        )
        for name, value in sums.items()
    ]


def _line_cells(line: Line) -> list[dict[str, Any]]:
    cells = {
        "position": _cell(line.position),
        "article": _cell(line.article or line.buyer_article or line.standard_article),
        "description": _cell(line.description),
        "quantity": _number_cell(line.quantity),
        "unit": _cell(line.unit, codes.UNITS.get(line.unit, line.unit)),
        "unit_price": _number_cell(line.unit_price),
        "tax_rate": _number_cell(line.tax_rate),
        "amount": _number_cell(line.amount),
    }
    return [cells[column] for column in LINE_COLUMNS]


def _table(name: str, columns: dict[str, str], rows: list[list[dict[str, Any]]]) -> dict[str, Any]:
    table = {
        "name": name,
        "page": None,
        "box": None,
        "columns": [{"name": each, "label": label_of(each), "kind": kind} for each, kind in columns.items()],
        "rows": rows[:MOST_ROWS],
    }
    return table | {"rows_left_out": len(rows) - MOST_ROWS} if len(rows) > MOST_ROWS else table


def _cell(value: str, text: str = "") -> dict[str, Any]:
    return {"text": text or value, "value": value, "page": None, "box": None}


def _number_cell(of: Amount | None) -> dict[str, Any]:
    return _cell(amount(of) if of and of.currency else decimal(of))
