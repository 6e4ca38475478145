"""Checks an invoice as an accountant does, and prepares its payment.

ADE has read the document, and people may have corrected what it found: this configuration takes these fields and line
items and does not read the file again. It reports what it adds, and publishes it to the document.
"""

import json

import checks
import payment
from invoice import Invoice

from ade_engine import Context, Rejected, step

INVOICES = ("invoice", "credit_note")


@step
def read(ctx: Context) -> None:
    invoice = Invoice(ctx.document)
    if not ctx.document.text.strip() and not ctx.document.fields:
        raise Rejected(f"{ctx.document.name} ({ctx.document.content_type}) contains no text that ADE could read.")
    if invoice.type and invoice.type not in INVOICES:
        raise Rejected(
            f"{ctx.document.name} is not an invoice: its type is {invoice.type.replace('_', ' ')}."
            " If it is an invoice, change the type on the document's page and run again."
        )
    if not invoice.number and invoice.total is None:
        raise Rejected(
            f"{ctx.document.name} has neither an invoice number nor a total."
            " If it is an invoice, add them on the document's page and run again."
        )
    ctx.log(f"{len(ctx.document.fields)} fields and {len(invoice.items)} line items")
    ctx.data["invoice"] = invoice


@step
def complete(ctx: Context) -> None:
    """Compute the one of net, tax and gross that the invoice leaves out, and the day on which it is due."""
    invoice: Invoice = ctx.data["invoice"]
    if missing := invoice.missing_total():
        name, value, confidence = missing
        ctx.field(name, invoice.money(value), confidence=confidence)
        ctx.log(f"{name} is computed from the two other totals: {invoice.money(value)}")
        invoice = invoice.with_value(name, invoice.money(value), confidence)
    if not invoice.text("due_date") and (due := payment.due_date(invoice)):
        day, confidence = due
        ctx.field("due_date", day, confidence=confidence)
        ctx.log(f"due_date is computed from the terms of payment: {day}")
        invoice = invoice.with_value("due_date", str(day), confidence)
    ctx.data["invoice"] = invoice


@step
def check(ctx: Context) -> None:
    found = list(checks.all_of(ctx.data["invoice"]))
    failed = [each for each in found if each.passed is False]
    for each in failed:
        ctx.log(f"{each.name}: {each.detail}", "warning")
    ctx.table("checks", ["check", "result", "detail"], [(each.name, each.result, each.detail) for each in found])
    ctx.field("failed_checks", len(failed))
    ctx.data["checks"] = found


@step
def prepare_payment(ctx: Context) -> None:
    invoice: Invoice = ctx.data["invoice"]
    if discount := payment.discount(invoice):
        found = {"discount_date": str(discount.until), "discounted_total": invoice.money(discount.total)}
        for name, value in found.items():
            ctx.field(name, value, confidence=discount.confidence)
            invoice = invoice.with_value(name, value, discount.confidence)
        ctx.data["invoice"] = invoice
    try:
        ctx.artifact("payment.txt", payment.transfer(invoice))
    except payment.NotPayable as reason:
        ctx.log(f"no payment is prepared: {reason}")


@step
def report(ctx: Context) -> None:
    """Write everything to a file for other programs."""
    invoice: Invoice = ctx.data["invoice"]
    data = {
        "fields": invoice.values(),
        "line_items": [{name: cell.text for name, cell in row.items()} for row in invoice.rows],
        "checks": [{"check": each.name, "result": each.result, "detail": each.detail} for each in ctx.data["checks"]],
    }
    ctx.artifact("invoice.json", json.dumps(data, indent=2, ensure_ascii=False))
