#!/usr/bin/env python3
"""Fit the weights of the recogniser (`recognition/weights.json`), and print how it does.

The weights are fitted on drawn invoices and, with `--corpus FOLDER`, on PDF files of the ZUGFeRD corpus (Apache-2.0)
with their `truth.jsonl`. What the calibration says is measured on layouts and sellers that were left out of the fit.
"""

import argparse
import json
import random
import resource
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "programs")]

from ade_extractor import pdf  # noqa: E402  # its folder is added above
from ade_understanding.recognition import document, scores, types  # noqa: E402
from ade_understanding.recognition.candidates import Candidate  # noqa: E402
from ade_understanding.recognition.languages import HELPERS  # noqa: E402
from ade_understanding.recognition.page import analyse  # noqa: E402
from tests.understanding.drawing.layouts import LAYOUTS, invoice  # noqa: E402
from tests.understanding.drawing.others import KINDS  # noqa: E402
from tests.understanding.drawing.sheets import scanned  # noqa: E402
from tests.understanding.drawing.wording import LANGUAGES  # noqa: E402

WEIGHTS = ROOT / "programs/ade_understanding/recognition/weights.json"
SMOOTHING = 4.0
# The fewest values that a point of the calibration stands for.
FEWEST = 30
# The date of a paper whose type is not clear.
DATES = {"date": "invoice_date", "invoice_date": "date"}
LIMITS = resource.getrlimit(resource.RLIMIT_CPU)
# Fields at 0.9 or more keep the promise of 98 percent, so less certain ones are said to be just below 0.9.
PROMISED, SAID_BELOW = 0.955, 0.895


class Known(NamedTuple):
    """A document with what is true, and the part of the documents that it belongs to. All invoices of a layout and all
    files of a seller are in one part. If the truth is not complete, names that it lacks are unknown.
    """

    part: str
    pages: list[dict[str, Any]]
    truth: dict[str, str]
    is_complete: bool


def drawn(count: int) -> Iterator[Known]:
    for language in LANGUAGES:
        for layout in LAYOUTS:
            for seed in range(count):
                paper = invoice(f"fit{seed}", language, layout)  # type: ignore[no-untyped-call]  # a part of the tests
                yield Known(layout, read(paper, seed), paper.truth, is_complete=True)
        for draw in KINDS.values():
            for seed in range(max(count // 2, 1)):
                paper = draw(f"fit{seed}", language)  # type: ignore[no-untyped-call]  # a part of the tests
                yield Known(sorted(LAYOUTS)[seed % len(LAYOUTS)], read(paper, seed), paper.truth, is_complete=True)


def read(paper: Any, seed: int) -> list[dict[str, Any]]:
    """Return the pages of a drawn paper, one in six as a scan with mistakes."""
    chance = random.Random(f"scan{seed}")  # noqa: S311  # chance that repeats itself
    pages: list[dict[str, Any]] = paper.pages
    if seed % 6 == 5:
        return [scanned(page, chance) for page in pages]  # type: ignore[no-untyped-call]  # a part of the tests
    return pages


def corpus(folder: Path) -> Iterator[Known]:
    for line in (folder / "truth.jsonl").read_text("utf-8").splitlines():
        entry = json.loads(line)
        truth = {name: str(value) for name, value in entry["truth"].items() if value is not None and name != "lines"}
        pages = []
        for page in pdf.read(folder / entry["pdf"], "application/pdf", 1, 50).pages:
            page.place_words()
            pages.append(
                {"number": page.number, "text": page.text, "words": json.loads(page.words), "tables": []}
                | {"width": page.width, "height": page.height}
            )
        # The reader limits its own process.
        resource.setrlimit(resource.RLIMIT_CPU, LIMITS)
        # All files of a seller are in the same part, so that the seller is left out with it.
        part = sum(map(ord, truth["seller"])) % len(LAYOUTS)
        yield Known(sorted(LAYOUTS)[part], pages, truth, is_complete=False)


def is_right(candidate: Candidate, known: Known) -> bool | None:
    truth = known.truth.get(candidate.name, known.truth.get(DATES.get(candidate.name, "")))
    if truth is None:
        return False if known.is_complete else None
    if candidate.kind == "amount" and not known.is_complete:
        return abs(float(candidate.value.partition(" ")[0]) - float(truth)) < 0.005
    if candidate.kind in ("iban", "vat_id"):
        truth = truth.replace(" ", "")
    return plain(candidate.value) in (plain(truth), plain(truth.splitlines()[-1]))


def plain(text: str) -> str:
    return "".join(character for character in text.casefold() if character.isalnum() or character in "-,.")


def fit(rows: list[tuple[list[str], bool]]) -> tuple[float, dict[str, float]]:
    """Return the bias and the weights of a logistic regression, found by Newton's method."""
    names = sorted({name for features, _ in rows for name in features})
    place = {name: at + 1 for at, name in enumerate(names)}
    matrix = np.zeros((len(rows), len(names) + 1))
    matrix[:, 0] = 1
    for at, (features, _) in enumerate(rows):
        matrix[at, [place[name] for name in features]] = 1
    right = np.array([is_right for _, is_right in rows], float)
    weights = np.zeros(len(names) + 1)
    penalty = np.full(len(weights), SMOOTHING)
    penalty[0] = 0.01
    for _ in range(12):
        said = 1 / (1 + np.exp(-np.clip(matrix @ weights, -30, 30)))
        gradient = matrix.T @ (said - right) + penalty * weights
        curvature = (matrix.T * (said * (1 - said))) @ matrix + np.diag(penalty)
        step = np.linalg.solve(curvature, gradient)
        weights -= step
        if np.abs(step).max() < 1e-2:
            break
    return float(weights[0]), {name: round(float(weights[at]), 3) for name, at in place.items()}


def candidates_of(known: Known) -> list[Candidate]:
    found = [analyse(page) for page in known.pages]
    return [each for each in document.resolve(found, types.recognise(found)) if each.name not in HELPERS]


def rows_of(documents: list[Known]) -> list[tuple[str, list[str], bool]]:
    rows = []
    for known in documents:
        for candidate in candidates_of(known):
            if (right := is_right(candidate, known)) is not None:
                rows.append((known.part, sorted(set(candidate.features())), right))
    return rows


def use(bias: float, weights: dict[str, float], calibration: list[list[float]]) -> None:
    scores.BIAS = bias
    scores.WEIGHTS.clear()
    scores.WEIGHTS.update(weights)
    scores.set_calibration(calibration)


def chosen_of(documents: list[Known]) -> list[tuple[float, bool, str]]:
    said = []
    for known in documents:
        for candidate in document.chosen(candidates_of(known), least=0.0):
            if (right := is_right(candidate, known)) is not None:
                said.append((candidate.confidence, right, candidate.name))
    return said


def calibrate(said: list[tuple[float, bool, str]]) -> list[list[float]]:
    """Return points of the share that was right by what the model says: pooled until the shares ascend."""
    pools: list[list[float]] = []
    ordered = sorted(said)
    size = max(FEWEST, len(ordered) // 250)
    for start in range(0, len(ordered), size):
        part = ordered[start : start + size]
        pools.append([part[0][0], sum(right for _, right, _ in part), len(part)])
        while len(pools) > 1 and pools[-2][1] / pools[-2][2] >= pools[-1][1] / pools[-1][2]:
            last = pools.pop()
            pools[-1] = [pools[-1][0], pools[-1][1] + last[1], pools[-1][2] + last[2]]
    points = []
    for least, right, count in pools:
        # A few imagined mistakes, because other papers are harder than drawn ones.
        share = (right + 0.5) / (count + 1.5)
        if 0.9 <= share < PROMISED:
            share = SAID_BELOW
        points.append([round(least, 4), round(min(share, 0.995), 4)])
    return points


def table(said: list[tuple[float, bool, str]]) -> None:
    print("said        values  right  said on average")
    for tenth in range(9, -1, -1):
        part = [each for each in said if tenth / 10 <= each[0] < (tenth + 1) / 10 + (tenth == 9)]
        if part:
            right = sum(right for _, right, _ in part) / len(part)
            mean = sum(value for value, _, _ in part) / len(part)
            print(f"{tenth / 10:.1f} to {(tenth + 1) / 10:.1f}  {len(part):6}  {right:6.1%}  {mean:6.1%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, help="a folder of PDF files with truth.jsonl")
    parser.add_argument("--papers", type=int, default=12, help="drawn invoices per language and layout (default: 12)")
    arguments = parser.parse_args()
    documents = list(drawn(arguments.papers))
    real = list(corpus(arguments.corpus)) if arguments.corpus else []
    # Real papers count more often, because there are few of them.
    rows = rows_of(documents) + 3 * rows_of(real)
    left_out: list[tuple[float, bool, str]] = []
    for part in sorted({known.part for known in documents + real}):
        bias, weights = fit([(features, right) for other, features, right in rows if other != part])
        use(bias, weights, [])
        left_out += chosen_of([known for known in documents + real if known.part == part])
    calibration = calibrate(left_out)
    bias, weights = fit([(features, right) for _, features, right in rows])
    weights = {name: weight for name, weight in weights.items() if weight}
    model = {"bias": round(bias, 3), "calibration": calibration, "weights": weights}
    WEIGHTS.write_text(json.dumps(model, indent=1, ensure_ascii=False, sort_keys=True) + "\n", "utf-8")
    use(bias, weights, calibration)
    table([(scores.calibrated(value), right, name) for value, right, name in left_out])
    wrong: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for value, right, name in left_out:
        if scores.calibrated(value) >= document.LEAST:
            wrong[name][right] += 1
    for name, (no, yes) in sorted(wrong.items()):
        print(f"{name:22} right {yes:5}  wrong {no:5}")


if __name__ == "__main__":
    main()
