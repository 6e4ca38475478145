"""Actor commands for the reading part: create files, add them as documents, and read them without ADE."""

import random
import time
from pathlib import Path

import pypdfium2
from django.db.models import Max, Min
from fpdf import FPDF

from documents import intake, lifecycle
from documents.models import Document, Stage
from workspaces.models import Workspace

WORDS = "apples delivery contract customer shipment quality report month payment order project energy window station"
PARAGRAPHS, WORDS_OF_A_PARAGRAPH = 5, 80
LONGEST_SECONDS = 120.0


def prepare(folder: str, pages: int, short: int) -> None:
    lifecycle.create_workspace("reading")
    chance = random.Random(1)  # noqa: S311  # must be reproducible
    for name, number in (("long", pages), ("short", short)):
        _path(folder, name).write_bytes(_pdf(number, chance))


def bare(folder: str) -> float:
    """Return the seconds for extracting the text of all pages without ADE, on one core."""
    began = time.perf_counter()
    document = pypdfium2.PdfDocument(_path(folder, "long"))
    for page in document:
        text_page = page.get_textpage()
        text_page.get_text_range()
        text_page.close()
        page.close()
    document.close()
    return time.perf_counter() - began


def process(folder: str, which: str) -> dict[str, float]:
    """Add a document. Return the seconds from the upload until search can find the document, and from the start of its
    first reading stage to the end of the last one.
    """
    workspace = Workspace.objects.get()
    began = time.perf_counter()
    document = intake.add_file(workspace, _path(folder, which), actor="benchmark", again=True)
    while (status := Document.objects.values_list("status", flat=True).get(pk=document.pk)) == "processing":
        if time.perf_counter() - began > LONGEST_SECONDS:
            raise TimeoutError(f"{which} was not read within {LONGEST_SECONDS} s")
        time.sleep(0.005)
    took = time.perf_counter() - began
    assert status == "processed", status
    stages = Stage.objects.filter(job__document=document, name="extract")
    reading = stages.aggregate(began=Min("started_at"), ended=Max("finished_at"))
    return {"searchable": took, "extract": (reading["ended"] - reading["began"]).total_seconds()}


def _path(folder: str, name: str) -> Path:
    return Path(folder, f"{name}.pdf")


def _pdf(pages: int, chance: random.Random) -> bytes:
    made = FPDF()
    made.set_font("Helvetica", size=10)
    for _ in range(pages):
        made.add_page()
        for _ in range(PARAGRAPHS):
            made.multi_cell(0, 5, " ".join(chance.choices(WORDS.split(), k=WORDS_OF_A_PARAGRAPH)) + ".")
            made.ln(4)
    return bytes(made.output())
