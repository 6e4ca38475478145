"""Reads an invoice: number, dates, parties, totals, bank accounts, VAT IDs and line items.

Each step does one thing and passes its results on in `ctx.data`. The last step reports them.
"""

import json
from pathlib import Path

import amounts
import dates
import details
import items
import parties
import reading
import totals
from findings import Finding, change, readable
from labels import Labels
from layout import Layout

from ade_engine import Context, Rejected, step

WORDS_FOR_INVOICE = ("invoice", "rechnung", "facture", "factuur", "factura", "fattura")


@step
def read(ctx: Context) -> None:
    layout = _layout_of(ctx)
    pages = "1 page" if len(layout.pages) == 1 else f"{len(layout.pages)} pages"
    ctx.log(f"read {layout.word_count} words on {pages}")
    heads = items.find_heads(layout)
    ctx.data["layout"] = layout
    ctx.data["heads"] = heads
    ctx.data["labels"] = Labels(layout, [head.line for head in heads])
    ctx.data["decimal_mark"] = amounts.decimal_mark(layout.text)


@step
def find_number_and_dates(ctx: Context) -> None:
    layout = ctx.data["layout"]
    month_first = dates.prefers_month_first(layout.text)
    ctx.data["found"] = details.number_and_dates(ctx.data["labels"], month_first)
    ctx.data["ibans"] = details.find_ibans(layout)


@step
def find_parties(ctx: Context) -> None:
    found = parties.find_parties(ctx.data["labels"])
    vat_ids = details.find_vat_ids(ctx.data["layout"])
    ctx.data["vat_ids"] = list(parties.assign_vat_ids(ctx.data["labels"], found.get("buyer_name"), vat_ids))
    ctx.data["found"] = ctx.data["found"] | found


@step
def find_totals(ctx: Context) -> None:
    found = totals.find_totals(ctx.data["labels"], ctx.data["decimal_mark"])
    countries = [finding.value[:2] for finding in [*ctx.data["ibans"], *(vat_id for _, vat_id in ctx.data["vat_ids"])]]
    currency = totals.find_currency(ctx.data["layout"], found, countries)
    ctx.data["totals"] = found
    ctx.data["found"] = ctx.data["found"] | ({"currency": currency} if currency else {})
    _reject_what_is_no_invoice(ctx)


@step
def find_items(ctx: Context) -> None:
    ctx.data["items"] = items.find_items(ctx.data["layout"], ctx.data["heads"], ctx.data["decimal_mark"])
    ctx.log(f"found {len(ctx.data['items'])} line items")


@step
def check(ctx: Context) -> None:
    """Raise the confidence of values that agree with others, and lower it for contradictions."""
    found = dict(ctx.data["totals"])
    ctx.log(totals.check_sum(found))
    ctx.log(_check_items(found, ctx.data["items"]))
    totals.complete(found)
    ctx.data["found"] = ctx.data["found"] | found


@step
def report(ctx: Context) -> None:
    found = [*ctx.data["found"].items(), *(("iban", iban) for iban in ctx.data["ibans"]), *ctx.data["vat_ids"]]
    for name, finding in found:
        _report_field(ctx, name, finding)
    _report_items(ctx)
    ctx.artifact("explanation.txt", "\n".join(_explained(name, finding) for name, finding in found) + "\n")
    ctx.artifact(
        "invoice.json", json.dumps(_as_json(found, ctx.data["items"]), indent=2, ensure_ascii=False, default=str)
    )


def _layout_of(ctx: Context) -> Layout:
    if ctx.document.content_type == "application/pdf" and ctx.document.path is not None:
        layout = _read_pdf(ctx, ctx.document.path)
        if layout.word_count:
            return layout
        ctx.log("the PDF itself has no text; using the extracted text, without places", "warning")
    layout = reading.read_text(ctx.document.text)
    if not layout.word_count:
        raise Rejected(_why_unreadable(ctx))
    return layout


def _read_pdf(ctx: Context, path: Path) -> Layout:
    try:
        return reading.read_pdf(path, ctx.progress)
    except reading.Unreadable as error:
        raise Rejected(f"{ctx.document.name}: {error}") from error


def _why_unreadable(ctx: Context) -> str:
    if ctx.document.content_type == "application/pdf":
        return (
            f"{ctx.document.name} contains only pictures and no text; it was probably scanned."
            " Run text recognition (OCR) over it, or upload the PDF that the seller sent."
        )
    return f"{ctx.document.name} ({ctx.document.content_type}) contains no text. Use a PDF or a document with text."


def _reject_what_is_no_invoice(ctx: Context) -> None:
    layout, has_number, has_total = ctx.data["layout"], "invoice_number" in ctx.data["found"], bool(ctx.data["totals"])
    says_invoice = any(word in layout.text.casefold() for word in WORDS_FOR_INVOICE)
    if not has_number and not has_total:
        raise Rejected(
            f"This is not an invoice: its {layout.word_count} words contain neither an invoice number nor a total."
        )
    if not has_number and not says_invoice:
        raise Rejected(
            f"This is not an invoice: its {layout.word_count} words contain a total, but no invoice number and"
            f" none of the words {', '.join(WORDS_FOR_INVOICE)}."
        )


def _check_items(found: dict[str, Finding], rows: list[items.Item]) -> str:
    if not rows:
        return "no line items to check the totals with"
    total = items.total_of(rows)
    for name in (totals.NET, totals.GROSS):
        if name in found and abs(found[name].value - total) <= totals.TOLERANCE:
            change(found, name, lambda each: each.raised(0.6, f"the line items add up to {total}"))
            return f"{len(rows)} line items add up to {total}, the {name.replace('_', ' ')}"
    change(found, totals.NET, lambda each: each.lowered(0.2, f"the line items add up to {total}"))
    return f"{len(rows)} line items add up to {total}, which is neither the net nor the gross total"


def _report_field(ctx: Context, name: str, finding: Finding) -> None:
    layout: Layout = ctx.data["layout"]
    ctx.log(_explained(name, finding))
    if finding.page is None or finding.box is None or not layout.has_places:
        ctx.field(name, readable(finding.value), confidence=round(finding.confidence, 2))
        return
    box = layout.shares(finding.page, finding.box)
    ctx.field(name, readable(finding.value), confidence=round(finding.confidence, 2), page=finding.page, box=box)


def _report_items(ctx: Context) -> None:
    rows: list[items.Item] = ctx.data["items"]
    ctx.field("line_items", len(rows))
    columns = ["page", "position", "description", "quantity", "unit", "unit_price", "tax_rate", "amount", "multiplies"]
    ctx.table("line_items", columns, [_item_row(item) for item in rows])


def _item_row(item: items.Item) -> list[object]:
    checked = {True: "yes", False: "no", None: ""}[item.multiplies()]
    numbers = [item.unit_price, item.tax_rate, item.amount]
    return [item.page, item.position, item.description, item.quantity, item.unit, *numbers, checked]


def _explained(name: str, finding: Finding) -> str:
    place = f" on page {finding.page}" if finding.page else ""
    return f"{name} = {readable(finding.value)} ({finding.confidence:.2f}{place}): {'; '.join(finding.reasons)}"


def _as_json(found: list[tuple[str, Finding]], rows: list[items.Item]) -> dict[str, object]:
    fields = [
        {"name": name, "value": readable(each.value), "confidence": round(each.confidence, 2), "because": each.reasons}
        for name, each in found
    ]
    lines = [{name: value for name, value in vars(row).items() if name != "box"} for row in rows]
    return {"fields": fields, "line_items": lines}
