"""Changes e-invoices and counts which changes ADE notices: `python -m benchmarks.changes FOLDER [--list]`.

FOLDER has PDF files with XML inside. Each change concerns one value of one file: half of the values are changed in the
text of the page, the others in the XML. A change is noticed if the document gets a problem that the untouched file has
not. Files that have problems without any change are listed, with what is wrong.
"""

import argparse
import json
import multiprocessing
import random
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from ade_extractor import DIGEST, OUTPUT, digest, einvoices, limits, pages, pdf
from ade_understanding import vocabulary
from benchmarks import pdf_editing, printed, xml_truth
from benchmarks.attachments import xml_inside

PDF = "application/pdf"
PAGE, XML = "page", "xml"


@dataclass
class Change:
    file: Path
    side: str
    name: str
    old: str
    new: str
    problems: list[str] = field(default_factory=list)


def changes(folder: Path, number: int, seed: int, directory: Path) -> Iterator[tuple[Change, Path]]:
    """Yield changes, each with the changed file: as many kinds of fields as possible, then further files."""
    choose = random.Random(seed)  # noqa: S311  # a choice of samples
    values: dict[str, list[tuple[Path, str, str]]] = {}
    for path in sorted(folder.glob("*.pdf")):
        for name, kind, value in _printed_values(path):
            values.setdefault(name, []).append((path, kind, value))
    for each in values.values():
        choose.shuffle(each)
    names = sorted(values)
    made = 0
    while made < number and any(values.values()):
        for name in names:
            while made < number and values[name]:
                path, kind, value = values[name].pop()
                # Alternate the sides, and begin with the other one for the second change of a field.
                side = (PAGE, XML)[made % 2]
                new = changed(kind, value)
                target = directory / f"{made}-{path.name}"
                if _make(side, path, target, name, kind, value, new):
                    made += 1
                    yield Change(path, side, name, value, new), target
                    break


def changed(kind: str, value: str) -> str:
    """Return another value of the same kind."""
    if kind == "date":
        return (date.fromisoformat(value) + timedelta(days=9)).isoformat()
    if kind in ("amount", "decimal"):
        whole, mark, rest = value.partition(".")
        digit = "1" if whole[-1] != "1" else "2"
        return f"{whole[:-1]}{digit}{mark}{rest}"
    if kind == "text":
        *words, last = value.split(" ")
        return " ".join([*words, "Changed" if last != "Changed" else "Other"])
    last = "7" if value[-1] != "7" else "3"
    return f"{value[:-1]}{last}"


def problems_of(path: Path) -> list[str]:
    """Return what ADE finds wrong, in a process of its own, because reading limits the processor time."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(_problems, (path,))


def _problems(path: Path) -> list[str]:
    limits.begin()
    with TemporaryDirectory(prefix="ade-changes-") as name:
        directory = Path(name)
        reading = pdf.read(path, PDF, 1, limits.MOST_PAGES)
        pages.write(reading, directory, lambda number: None, with_words=True)
        digest.write([directory / OUTPUT], directory, lambda number: ("[]", []), einvoices.find(path, PDF))
        digested = json.loads((directory / DIGEST).read_text())
    fields = {(each["source"] == "e-invoice", each["name"]): each for each in digested["fields"]}
    conflicts = [
        f"conflict: {name} “{each['value']}” and “{fields[True, name]['value']}”"
        for (is_exact, name), each in fields.items()
        if not is_exact and (True, name) in fields and each["confidence"] >= 0.5
        if not printed.is_equal(each["kind"], each["value"], fields[True, name]["value"])
    ]
    return [f"{each['code']}: {each['message']}" for each in digested["problems"]] + conflicts


def _printed_values(path: Path) -> Iterator[tuple[str, str, str]]:
    data = xml_inside(path)
    if not data:
        return
    text = pdf_editing.text_of(path)
    header, lines = xml_truth.truth(data)
    kinds = vocabulary.FIELDS
    values = [(name, kinds.get(name, "amount"), value) for name, value in header.items()]
    for column, kind in vocabulary.LINE_COLUMNS.items():
        values += [(f"{xml_truth.LINE}{column}", kind, line[column]) for line in lines if column in line][:1]
    for name, kind, value in values:
        is_zero = kind in ("amount", "decimal") and not any(digit in "123456789" for digit in value)
        is_usable = name != "currency" and "\n" not in value and not is_zero and len(value) > 1
        is_usable = is_usable and (kind != "date" or bool(printed.iso_day(value)))
        if is_usable and printed.is_printed(kind, value, text):
            yield name, kind, value


def _make(side: str, path: Path, target: Path, name: str, kind: str, old: str, new: str) -> bool:
    """Write the changed file, and return whether that was possible."""
    if side == PAGE:
        return pdf_editing.replace_text(
            path, target, printed.patterns(kind, old), lambda shown: _shown(kind, shown, new)
        )
    data = xml_inside(path)
    assert data
    root = ET.fromstring(data)  # noqa: S314  # files that the person who measures has chosen
    element = xml_truth.element_of(root, name)
    if element is None:
        return False
    element.text = new.replace("-", "") if element.get("format") == "102" else new
    pdf_editing.replace_xml(path, target, ET.tostring(root, "utf-8", xml_declaration=True))
    return True


def _shown(kind: str, shown: str, new: str) -> str:
    """Return the new value in the format in which the old one is printed."""
    if kind == "date":
        day = date.fromisoformat(new)
        return f"{day:%Y-%m-%d}" if shown[:4].isdigit() else f"{day:%d.%m.%Y}"
    if kind in ("amount", "decimal"):
        # Another last digit before the decimals.
        digits = [index for index, character in enumerate(shown) if character.isdigit()]
        marks = [index for index, character in enumerate(shown) if character in ".,"]
        at = max((index for index in digits if not marks or index < marks[-1]), default=digits[-1])
        return f"{shown[:at]}{'1' if shown[at] != '1' else '2'}{shown[at + 1 :]}"
    return changed(kind, shown)


def run(folder: Path, number: int, seed: int, say: Callable[[str], None], *, with_list: bool) -> list[Change]:
    untouched = {path: problems_of(path) for path in sorted(folder.glob("*.pdf")) if xml_inside(path)}
    done = []
    with TemporaryDirectory(prefix="ade-changes-") as name:
        for change, path in changes(folder, number, seed, Path(name)):
            before = untouched[change.file]
            change.problems = [each for each in problems_of(path) if each not in before]
            done.append(change)
    noticed = sum(bool(change.problems) for change in done)
    say(f"{noticed} of {len(done)} changes noticed")
    for side in (PAGE, XML):
        of_side = [change for change in done if change.side == side]
        say(f"  {side}: {sum(bool(change.problems) for change in of_side)} of {len(of_side)}")
    for change in done:
        if with_list or not change.problems:
            what = f"{change.side} {change.file.name} {change.name}: {change.old} → {change.new}"
            say(f"{'noticed' if change.problems else 'MISSED '} {what}")
            for problem in change.problems:
                say(f"          {problem}")
    for path, found in untouched.items():
        for problem in found:
            say(f"untouched {path.name}: {problem}")
    say(f"{sum(bool(found) for found in untouched.values())} of {len(untouched)} untouched files have problems")
    return done


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.changes", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--number", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1, help="another seed chooses other values (default: 1)")
    parser.add_argument("--list", action="store_true", help="also list the changes that were noticed")
    options = parser.parse_args(arguments)
    done = run(options.folder, options.number, options.seed, print, with_list=options.list)
    return 0 if all(change.problems for change in done) else 1


if __name__ == "__main__":
    sys.exit(main())
