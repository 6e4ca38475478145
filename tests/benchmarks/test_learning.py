"""The measurement of learning runs as people start it, on invoices that it reads itself."""

import json
import os
import subprocess
import sys

import pytest
from fpdf import FPDF

pytestmark = [pytest.mark.long(seconds=15), pytest.mark.once]


def invoice(number, total):
    made = FPDF()
    made.set_font("Helvetica", size=11)
    made.add_page()
    for label, value in [("Nordlicht Werkstatt", ""), ("Vorgang", number), ("Bitte zahlen Sie", total)]:
        made.cell(60, 10, label)
        made.cell(60, 10, value)
        made.ln()
    return bytes(made.output())


def test_one_corrected_document_helps_with_the_others(tmp_path):
    lines = []
    for n in range(3):
        number, total = f"{4711 + 9 * n}", f"{100 + n},50"
        (tmp_path / f"{n}.pdf").write_bytes(invoice(number, total))
        truth = {"seller": "Nordlicht Werkstatt", "invoice_number": number, "due_amount": f"{100 + n}.50", "lines": 1}
        lines.append(json.dumps({"pdf": f"{n}.pdf", "truth": truth}))
    (tmp_path / "truth.jsonl").write_text("\n".join(lines))

    command = [sys.executable, "-m", "benchmarks.learning", str(tmp_path), "--list"]
    ended = subprocess.run(command, env=os.environ, capture_output=True, text=True, check=False)

    assert ended.returncode == 0, ended.stderr
    assert "families: 1, documents: 3" in ended.stdout
    assert "right: 18 (100.0%)" in ended.stdout
    assert "restored 3, not restored 0" in ended.stdout
