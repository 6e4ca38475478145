"""The understanding part: what ADE's reader finds in a folder of invoices or receipts, compared with their truth.

`make bench ARGS="--only understanding --data FOLDER"`, or `python -m benchmarks.understanding FOLDER [--list]` for a
part of it and the wrong values. A folder of invoices has PDF files and `truth.jsonl`, with lines such as
{"pdf": "a.pdf", "truth": {"invoice_number": "12", "gross_total": "9.50"}}; the XML inside a PDF adds what the line does
not hold. XML files in the folder and below it are measured as e-invoices. A folder of receipts has `box/N.csv` (eight
coordinates and the text of each line) and `key/N.json` (company, date, total). Nothing is stored, and no database or
worker is used: each document is read and digested in a process of its own.
"""

import argparse
import json
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any

from ade_extractor import DIGEST, OUTPUT, digest, einvoices, limits, pages, pdf, xml_file
from ade_understanding import vocabulary
from benchmarks import xml_truth
from benchmarks.attachments import xml_inside
from benchmarks.printed import is_equal, is_printed, iso_day

PART = "understanding"
WAYS = E_INVOICE, PAGE = "e-invoice", "page"
PDF, XML = "application/pdf", "application/xml"
# Names under which the reader may give a value of a receipt.
_RECEIPT = {"seller": ("seller",), "invoice_date": ("invoice_date", "date"), "gross_total": ("gross_total",)}


@dataclass
class Document:
    name: str
    truth: dict[str, str]
    lines: list[dict[str, str]]
    text: str
    fields: dict[str, dict[str, Any]]
    rows: list[dict[str, str]]
    seconds: float
    pages: int


@dataclass
class Tally:
    """How often the value of one field is printed, and how often the reader finds something."""

    truths: int = 0
    printed: int = 0
    right: int = 0
    wrong: int = 0
    # Found although the truth has no value, or none that is printed.
    extra: int = 0


@dataclass
class Result:
    tallies: dict[str, Tally] = field(default_factory=dict)
    # The confidence of each judged field, and whether it was right.
    said: list[tuple[float, bool]] = field(default_factory=list)
    mistakes: list[str] = field(default_factory=list)


def measure(folder: Path, way: str) -> list[Document]:
    """Read all documents of a folder, with their e-invoices or by the page alone."""
    tasks: list[tuple[str, Path, str]]
    if (folder / "box").is_dir():
        tasks = [("receipt", path, way) for path in sorted((folder / "box").glob("*.csv"))]
    else:
        tasks = [("invoice", path, way) for path in sorted(folder.glob("*.pdf"))]
        tasks += [("xml", path, way) for path in sorted(folder.rglob("*.xml")) if way == E_INVOICE]
    # Fork a process for each document, because reading limits the processor time of its process.
    with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as pool:
        return [document for document in pool.imap(_read, tasks, chunksize=1) if document.truth]


def judge(documents: Iterable[Document], *, everything: bool = False) -> Result:
    """Compare what was found with the truth. Values that are not printed only count with `everything`."""
    result = Result()
    for document in documents:
        for name in sorted({*document.truth, *document.fields}):
            kind = vocabulary.FIELDS.get(name, "amount" if name.startswith("tax_") else "")
            if kind:
                found = document.fields.get(name)
                truth = document.truth.get(name)
                is_shown = truth is not None and (everything or is_printed(kind, truth, document.text))
                judged = _count(result, document.name, name, kind, truth, found["value"] if found else None, is_shown)
                if judged is not None and found:
                    result.said.append((found["confidence"], judged))
        for wanted, row in _paired(document.lines, document.rows):
            for column, kind in vocabulary.LINE_COLUMNS.items():
                value, truth = row.get(column) or None, wanted.get(column)
                is_shown = truth is not None and (everything or is_printed(kind, truth, document.text))
                _count(result, document.name, f"{xml_truth.LINE}{column}", kind, truth, value, is_shown)
    return result


def table(result: Result, documents: Sequence[Document]) -> str:
    """Return recall and precision per field, and the calibration of all."""
    lines = [f"{'field':28}{'truths':>8}{'printed':>8}{'right':>7}{'wrong':>7}{'extra':>7}{'recall':>8}{'prec.':>8}"]
    fields = {name: tally for name, tally in result.tallies.items() if not name.startswith(xml_truth.LINE)}
    cells = {name: tally for name, tally in result.tallies.items() if name.startswith(xml_truth.LINE)}
    for title, tallies in (("all fields", fields), ("all cells of lines", cells)):
        lines += [_line(name, tally) for name, tally in sorted(tallies.items())]
        if tallies:
            lines.append(_line(title, _sum(tallies.values())))
    lines += ["", f"{'confidence':12}{'fields':>8}{'said':>8}{'right':>8}"]
    for low in range(10):
        said = [
            (sure, right) for sure, right in result.said if low / 10 <= sure < (low + 1) / 10 or sure == 1 == low - 8
        ]
        if said:
            shares = f"{mean(sure for sure, _ in said):8.3f}{mean(right for _, right in said):8.3f}"
            lines.append(f"{low / 10:.1f} to {low / 10 + 0.1:.1f}  {len(said):8}{shares}")
    seconds, count = sum(each.seconds for each in documents), sum(each.pages for each in documents)
    lines += [
        "",
        f"{len(documents)} documents, {count} pages, {1000 * seconds / max(count, 1):.1f} ms of processor a page",
    ]
    return "\n".join(lines)


def run(folder: Path, ways: Sequence[str], print_line: Callable[[str], None], *, with_mistakes: bool) -> dict[str, Any]:
    """Measure a folder in each way, print the tables and return all figures."""
    figures: dict[str, Any] = {}
    for way in ways:
        documents = measure(folder, way)
        result = judge(documents, everything=way == E_INVOICE)
        print_line(f"\n{PART}: {folder.name}, source {way}\n{table(result, documents)}")
        for mistake in result.mistakes if with_mistakes else ():
            print_line(mistake)
        figures[way] = {name: vars(tally) for name, tally in sorted(result.tallies.items())} | {"said": result.said}
    return figures


def _count(
    result: Result, document: str, name: str, kind: str, truth: str | None, found: str | None, is_shown: bool
) -> bool | None:
    """Count one value, and return whether it is right, or None if that cannot be judged."""
    tally = result.tallies.setdefault(name, Tally())
    tally.truths += truth is not None
    if truth is None or not is_shown:
        tally.extra += found is not None
        return None
    tally.printed += 1
    if found is None:
        result.mistakes.append(f"missed  {document}: {name} {truth!r}")
        return None
    is_right = is_equal(kind, truth, found)
    tally.right += is_right
    tally.wrong += not is_right
    if not is_right:
        result.mistakes.append(f"wrong   {document}: {name} {found!r}, truth {truth!r}")
    return is_right


def _read(task: tuple[str, Path, str]) -> Document:
    kind, path, way = task
    lines: list[dict[str, str]] = []
    with TemporaryDirectory(prefix="ade-understanding-") as name:
        directory = Path(name)
        limits.begin()
        content_type = ""
        if kind == "receipt":
            truth = _receipt_truth(path)
            (directory / OUTPUT).write_text(json.dumps({"pages": [_receipt_page(path)], "pages_total": 1}))
        else:
            truth, lines = _invoice_truth(path) if kind == "invoice" else xml_truth.truth(path.read_bytes())
            content_type = PDF if kind == "invoice" else XML
            reader = pdf if kind == "invoice" else xml_file
            reading = reader.read(path, content_type, 1, limits.MOST_PAGES)
            pages.write(reading, directory, lambda number: None, with_words=True)
        started_at = time.process_time()
        e_invoice = einvoices.find(path, content_type) if way == E_INVOICE else einvoices.Found()
        count, _ = digest.write([directory / OUTPUT], directory, lambda number: ("[]", []), e_invoice)
        seconds = time.process_time() - started_at
        digested = json.loads((directory / DIGEST).read_text())
    found = _fields(digested["fields"], way)
    if kind == "receipt":
        names = {name: next((each for each in also if each in found), name) for name, also in _RECEIPT.items()}
        found = {name: found[other] for name, other in names.items() if other in found}
    rows = _rows(digested.get("tables", ()))
    return Document(path.name, truth, lines, digested["text"], found, rows, seconds, count)


def _fields(fields: Iterable[dict[str, Any]], way: str) -> dict[str, dict[str, Any]]:
    # `other` marks values of labels that are no fields of the type.
    return {
        each["name"]: each
        for each in fields
        if (each["source"] == E_INVOICE) == (way == E_INVOICE) and not each.get("other")
    }


def _rows(tables: Iterable[dict[str, Any]]) -> list[dict[str, str]]:
    return [
        {column["name"]: cell["value"] for column, cell in zip(each["columns"], row, strict=True) if cell["value"]}
        for each in tables
        if each["name"] == vocabulary.LINE_ITEMS
        for row in each["rows"]
    ]


def _invoice_truth(path: Path) -> tuple[dict[str, str], list[dict[str, str]]]:
    truth: dict[str, str] = {}
    lines: list[dict[str, str]] = []
    if data := xml_inside(path):
        truth, lines = xml_truth.truth(data)
    for line in (path.parent / "truth.jsonl").read_text("utf-8").splitlines():
        entry = json.loads(line)
        if entry["pdf"] == path.name:
            given = {name: str(value) for name, value in entry["truth"].items() if value is not None}
            truth |= {name: value for name, value in given.items() if name in vocabulary.FIELDS}
    for name in [name for name in truth if vocabulary.FIELDS.get(name) == "date"]:
        # A few files give days that do not exist.
        if day := iso_day(truth.pop(name)):
            truth[name] = day
    return truth, lines


def _receipt_truth(path: Path) -> dict[str, str]:
    key = json.loads((path.parents[1] / "key" / f"{path.stem}.json").read_text("utf-8"))
    truth = {"seller": key.get("company", ""), "invoice_date": iso_day(key.get("date", ""))}
    truth["gross_total"] = key.get("total", "").replace("RM", "").replace("$", "").replace(",", "").strip()
    return {name: value for name, value in truth.items() if value}


def _receipt_page(path: Path) -> dict[str, Any]:
    boxes = []
    for line in path.read_text("utf-8", "replace").splitlines():
        *places, text = line.split(",", 8)
        if len(places) == 8:
            numbers = [int(each) for each in places]
            boxes.append((min(numbers[::2]), min(numbers[1::2]), max(numbers[::2]), max(numbers[1::2]), text))
    width, height = max(each[2] for each in boxes), max(each[3] for each in boxes)
    words = []
    for left, top, right, bottom, text in boxes:
        at, share = 0, (right - left) / max(len(text), 1)
        for word in text.split():
            at = text.index(word, at)
            start, end = left + at * share, left + (at + len(word)) * share
            words.append([word, start / width, top / height, end / width, bottom / height])
            at += len(word)
    text = "\n".join(each[4] for each in boxes)
    return {"number": 1, "text": text, "width": width, "height": height, "words": words, "tables": []}


def _paired(
    lines: Sequence[dict[str, str]], rows: Sequence[dict[str, str]]
) -> list[tuple[dict[str, str], dict[str, str]]]:
    """Pair each true line with the found row that fits best. Rows that are left over have no truth."""
    left = list(rows)
    pairs = []
    for line in lines:
        fits = [sum(_fits(column, line, row) for column in vocabulary.LINE_COLUMNS) for row in left]
        best = max(range(len(left)), key=fits.__getitem__, default=None)
        pairs.append((line, left.pop(best) if best is not None and fits[best] else {}))
    return [*pairs, *(({}, row) for row in left)]


def _fits(column: str, line: dict[str, str], row: dict[str, str]) -> bool:
    kind = vocabulary.LINE_COLUMNS[column]
    return column in line and column in row and is_equal(kind, line[column], row[column])


def _line(name: str, tally: Tally) -> str:
    counts = f"{tally.truths:8}{tally.printed:8}{tally.right:7}{tally.wrong:7}{tally.extra:7}"
    recall = f"{tally.right / tally.printed:8.3f}" if tally.printed else " " * 8
    found = tally.right + tally.wrong
    return f"{name:28}{counts}{recall}" + (f"{tally.right / found:8.3f}" if found else "")


def _sum(tallies: Iterable[Tally]) -> Tally:
    total: Counter[str] = Counter()
    for tally in tallies:
        total.update(vars(tally))
    return Tally(**total)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.understanding", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--way", action="append", choices=WAYS, help="source to measure (default: both)")
    parser.add_argument("--list", action="store_true", help="also list what was wrong or missed")
    parser.add_argument("--json", type=Path, metavar="FILE", help="file to write all figures to")
    options = parser.parse_args(arguments)
    figures = run(options.folder, options.way or WAYS, print, with_mistakes=options.list)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
