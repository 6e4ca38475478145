"""A run that uses what ADE has understood of its document, and publishes what it has found."""

import pytest

from documents import fields, tables
from tests.factories import DocumentFieldFactory, FieldCorrectionFactory, write

pytestmark = [
    pytest.mark.once,
    pytest.mark.long,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("way"),
]

ADD_UP = """
from decimal import Decimal

from ade_engine import step

@step
def add_up(ctx):
    items = ctx.document.tables["line_items"]
    total = sum(Decimal(row["amount"].value.split()[0]) for row in items.rows)
    number = ctx.document.fields["invoice_number"]
    ctx.field("net_total", f"{total} EUR", confidence=0.9)
    ctx.field("invoice_number", f"{number.value} of {number.source}", confidence=number.confidence)
    ctx.field("type", ctx.document.type.name)
"""


def test_a_run_adds_up_the_rows_of_a_table_and_publishes_the_sum(lane):
    configuration, _ = lane.configure({"main.py": ADD_UP})
    write(configuration, publish=True)
    document = write(lane.document("in the file"), type="invoice")
    DocumentFieldFactory(document=document, name="invoice_number", value="A-1", confidence=0.5)
    FieldCorrectionFactory(document=document, name="invoice_number", value="A-2")
    column = {"name": "amount", "label": "Amount", "kind": "amount"}
    rows = [[{"text": f"{n},50", "value": f"{n}.50 EUR"}] for n in (1, 2)]
    tables.keep(document.pk, tables.lines([{"name": "line_items", "columns": [column], "rows": rows}]))

    run = lane.execute(document=document, configuration=configuration)

    assert (run.status, run.error_message) == ("succeeded", "")
    found = dict(run.fields.values_list("name", "value"))
    assert found == {"net_total": "4.00 EUR", "invoice_number": "A-2 of person", "type": "invoice"}
    rows = {row.name: row for row in fields.of_document(document.pk)}
    assert (rows["net_total"].value, rows["net_total"].source) == ("4.00 EUR", f"run {run.pk}")
    assert (rows["invoice_number"].value, rows["invoice_number"].machine_value) == ("A-2", "A-2 of person")
