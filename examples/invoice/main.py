"""Reads an invoice: number, dates, parties, totals, bank accounts, VAT IDs and line items.

Each step does one thing and passes its results on in `ctx.data`. The last step reports them.
"""

import json

import amounts
import dates
import details
import items
import parties
import reading
import totals
from findings import readable
from labels import Labels
from layout import Layout

from ade_engine import Context, Rejected, step

WORDS_FOR_INVOICE = ("invoice", "rechnung", "facture", "factuur", "factura", "fattura")


@step
def read(ctx: Context) -> None:
    layout = _read_layout(ctx)
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
    ctx.data["fields"] = details.number_and_dates(ctx.data["labels"], month_first)
    ctx.data["ibans"] = details.find_ibans(layout)


@step
def find_parties(ctx: Context) -> None:
    names = parties.find_parties(ctx.data["labels"])
    vat_ids = details.find_vat_ids(ctx.data["layout"])
    ctx.data["vat_ids"] = list(parties.assign_vat_ids(ctx.data["labels"], names.get("buyer_name"), vat_ids))
    ctx.data["fields"] = ctx.data["fields"] | names


@step
def find_totals(ctx: Context) -> None:
    layout = ctx.data["layout"]
    ctx.data["totals"] = totals.find_totals(ctx.data["labels"], ctx.data["decimal_mark"])
    countries = [finding.value[:2] for finding in [*ctx.data["ibans"], *(vat_id for _, vat_id in ctx.data["vat_ids"])]]
    if currency := totals.find_currency(layout, ctx.data["totals"], countries):
        ctx.data["fields"] = ctx.data["fields"] | {"currency": currency}
    if "invoice_number" in ctx.data["fields"]:
        return
    if not ctx.data["totals"]:
        raise Rejected(
            f"This is not an invoice: its {layout.word_count} words contain neither an invoice number nor a total."
        )
    if not any(word in layout.text.casefold() for word in WORDS_FOR_INVOICE):
        raise Rejected(
            f"This is not an invoice: its {layout.word_count} words contain a total, but no invoice number and"
            f" none of the words {', '.join(WORDS_FOR_INVOICE)}."
        )


@step
def find_items(ctx: Context) -> None:
    ctx.data["items"] = items.find_items(ctx.data["layout"], ctx.data["heads"], ctx.data["decimal_mark"])
    ctx.log(f"found {len(ctx.data['items'])} line items")


@step
def check(ctx: Context) -> None:
    """Raise the confidence of values that agree with others, and lower it for contradictions."""
    findings = dict(ctx.data["totals"])
    ctx.log(totals.check_sum(findings))
    ctx.log(totals.check_items(findings, ctx.data["items"]))
    totals.complete(findings)
    ctx.data["fields"] = ctx.data["fields"] | findings


@step
def report(ctx: Context) -> None:
    layout: Layout = ctx.data["layout"]
    rows: list[items.Item] = ctx.data["items"]
    fields = [*ctx.data["fields"].items(), *(("iban", iban) for iban in ctx.data["ibans"]), *ctx.data["vat_ids"]]
    reasons = []
    for name, finding in fields:
        value, confidence = readable(finding.value), round(finding.confidence, 2)
        place = f" on page {finding.page}" if finding.page else ""
        reasons.append(f"{name} = {value} ({finding.confidence:.2f}{place}): {'; '.join(finding.reasons)}")
        ctx.log(reasons[-1])
        if finding.page is None or finding.box is None or not layout.has_places:
            ctx.field(name, value, confidence=confidence)
        else:
            box = layout.shares(finding.page, finding.box)
            ctx.field(name, value, confidence=confidence, page=finding.page, box=box)
    ctx.field("line_items", len(rows))
    columns = ["page", "position", "description", "quantity", "unit", "unit_price", "tax_rate", "amount"]
    multiplies = {True: "yes", False: "no", None: ""}
    cells = [[*(getattr(row, name) for name in columns), multiplies[row.multiplies()]] for row in rows]
    ctx.table("line_items", [*columns, "multiplies"], cells)
    ctx.artifact("explanation.txt", "\n".join(reasons) + "\n")
    data = {
        "fields": [
            {"name": name, "value": readable(f.value), "confidence": round(f.confidence, 2), "because": f.reasons}
            for name, f in fields
        ],
        "line_items": [{name: value for name, value in vars(row).items() if name != "box"} for row in rows],
    }
    ctx.artifact("invoice.json", json.dumps(data, indent=2, ensure_ascii=False, default=str))


def _read_layout(ctx: Context) -> Layout:
    name, content_type, path = ctx.document.name, ctx.document.content_type, ctx.document.path
    is_pdf = content_type == "application/pdf"
    if is_pdf and path is not None:
        try:
            layout = reading.read_pdf(path, ctx.progress)
        except reading.Unreadable as error:
            raise Rejected(f"{name}: {error}") from error
        if layout.word_count:
            return layout
        ctx.log("the PDF itself has no text; using the extracted text, without places", "warning")
    layout = reading.read_text(ctx.document.text)
    if layout.word_count:
        return layout
    if is_pdf:
        raise Rejected(
            f"{name} contains only pictures and no text; it was probably scanned."
            " Run text recognition (OCR) over it, or upload the PDF that the seller sent."
        )
    raise Rejected(f"{name} ({content_type}) contains no text. Use a PDF or a document with text.")
