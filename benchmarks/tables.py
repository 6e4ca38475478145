"""The tables part: compares the tables that ADE finds in PDFs with their truth, and measures how long a page takes.

The PDFs come from the ICDAR 2013 table competition and are not part of ADE: `--data` names the folder that has
`us-001.pdf`, `us-001-str.xml` and so on, itself or in `tables/us`. The score of a document covers all its pages, so
tables that are not there lower it. Precision and recall are averages over the documents, as in the competition.
"""

import json
import resource
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import mean

from ade_extractor import limits, pdf
from ade_understanding.tables.find import find
from benchmarks import adjacency, report
from benchmarks.adjacency import Cell, Relations, Score

PART = "tables"
FOLDER = "tables/us"


def measure(data: Path, samples: report.Samples, say: Callable[[str], None]) -> None:
    places = (Path(data, FOLDER), data)
    found = (sorted(file for file in place.glob("*.pdf") if _truth_of(file).exists()) for place in places)
    files = next(filter(None, found), [])
    if not files:
        raise SystemExit(f"There are no PDFs with their truth in {data} or {places[0]}; name their folder with --data.")
    scores: list[Score] = []
    moments: list[float] = []
    # The reader limits the CPU time of its process, which is the whole benchmark here.
    limit = resource.getrlimit(resource.RLIMIT_CPU)
    for file in files:
        limits.begin()
        try:
            scores.append(_score(file, moments))
        finally:
            resource.setrlimit(resource.RLIMIT_CPU, limit)
            pdf.open_document.cache_clear()
        precision, recall = scores[-1].precision, scores[-1].recall
        say(f"{file.stem}: precision {precision:.2f}, recall {recall:.2f}")
    precision, recall = mean(score.precision for score in scores), mean(score.recall for score in scores)
    samples.add("tables.precision", precision)
    samples.add("tables.recall", recall)
    samples.add("tables.f1", adjacency.f1(precision, recall))
    samples.add("tables.f1.pooled", Score(*map(sum, zip(*scores, strict=True))).f1)
    samples.add_moments("tables.page", moments)
    samples.add("tables.peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def _score(file: Path, moments: list[float]) -> Score:
    found: Relations = Counter()
    for grid_relations, milliseconds in _of_pages(file):
        found += grid_relations
        moments.append(milliseconds)
    # Two truths of a file are two opinions, and either may be right.
    other = file.with_name(f"{file.stem.removesuffix('a')}b-str.xml")
    truths = [_truth_of(file), *([other] if file.stem.endswith("a") and other.exists() else [])]
    return max((adjacency.compare(found, adjacency.truth(each)) for each in truths), key=lambda score: score.f1)


def _truth_of(file: Path) -> Path:
    return file.with_name(f"{file.stem}-str.xml")


def _of_pages(file: Path) -> Iterator[tuple[Relations, float]]:
    for page in pdf.read(file, "application/pdf", 1, 100_000).pages:
        page.place_words()
        words = json.loads(page.words)
        began = time.process_time()
        rulings = page.find_rulings() if page.find_rulings else []
        grids = find(words, rulings, page.width or 0, page.height or 0)
        milliseconds = (time.process_time() - began) * 1000
        found: Relations = Counter()
        for grid in grids:
            found += adjacency.relations(
                Cell(cell.text, cell.top, cell.left, cell.bottom, cell.right) for cell in grid.cells
            )
        yield found, milliseconds
