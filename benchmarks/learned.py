"""Corrects documents and judges what was learned, in the database of `benchmarks/learning.py`."""

import argparse
import json
import tempfile
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import django

django.setup()

from django.core.management import call_command  # noqa: E402  # Django must be set up first

from ade_understanding.learning.candidates import Candidate  # noqa: E402
from ade_understanding.learning.lessons import document_of, is_same  # noqa: E402
from ade_understanding.learning.spellings import READERS, kind_of, whole  # noqa: E402
from ade_understanding.vocabulary import FIELDS  # noqa: E402
from documents import corrections, fields, learning, lessons, lifecycle, sender_updates, types, words  # noqa: E402
from documents.extraction import local  # noqa: E402
from documents.models import Document, DocumentField, Sender, SenderLesson, SenderUpdate  # noqa: E402
from workspaces.models import Workspace  # noqa: E402

PDF, PAGES, WALL_SECONDS = "application/pdf", 25, 120.0
SMALLEST_FAMILY = 3
# Values of the truth that are no fields.
NOT_FIELDS = frozenset({"lines"})
# Places without a label are the same if they are off by at most these parts of the page.
ASIDE, UP = 0.02, 0.03
ACTOR = "benchmark"


@dataclass(frozen=True)
class Sample:
    name: str
    truth: dict[str, str]
    fields: list[dict[str, Any]]
    pages: list[dict[str, Any]]


@dataclass
class Result:
    counts: Counter[str] = field(default_factory=Counter)
    by_field: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    mistakes: list[str] = field(default_factory=list)
    # The time that using the lessons of a sender took per document.
    seconds: list[float] = field(default_factory=list)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.learning")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--list", action="store_true", help="also list the values that were wrong")
    arguments = parser.parse_args()
    call_command("migrate", verbosity=0)
    families = _families(arguments.folder)
    result = Result()
    for family in families.values():
        for teacher in family:
            _teach_and_judge(family, teacher, result)
    _print(families, result)
    if arguments.list:
        print("\n".join(result.mistakes))


def _families(folder: Path) -> dict[str, list[Sample]]:
    families: dict[str, list[Sample]] = defaultdict(list)
    for line in (folder / "truth.jsonl").read_text("utf-8").splitlines():
        entry = json.loads(line)
        truth = {
            name: str(value)
            for name, value in entry["truth"].items()
            if value not in (None, "") and name not in NOT_FIELDS
        }
        if "seller" in truth:
            # The last line of a seller with several is its name.
            families[" ".join(truth["seller"].splitlines()[-1].split()).casefold()].append(
                Sample(entry["pdf"], truth, *_read(folder / entry["pdf"]))
            )
    return {name: samples for name, samples in families.items() if len(samples) >= SMALLEST_FAMILY}


def _read(file: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the fields that the page shows, and the words of the pages."""
    with tempfile.TemporaryDirectory() as directory:
        read = local.extract(file, PDF, 1, PAGES, Path(directory), wall_seconds=WALL_SECONDS)
        digest = local.digest(file, PDF, [read.path], Path(directory), wall_seconds=WALL_SECONDS)
    return [each for each in digest["fields"] if each["source"] == "page"], digest["words"]


def _teach_and_judge(family: list[Sample], teacher: Sample, result: Result) -> None:
    workspace = Workspace.objects.create(name=f"{Workspace.objects.count()}")
    sender = Sender.objects.create(workspace=workspace, name="family")
    documents = {sample.name: _add(workspace, sender, sample) for sample in family}
    ids = [document.pk for document in documents.values()]
    before = _state(ids)
    for name, value in teacher.truth.items():
        corrections.correct(documents[teacher.name].pk, name, value, actor=ACTOR)
    while documents[teacher.name].corrections.filter(learned_at__isnull=True).exists():
        learning.learn_due()
    # The samples have made-up identities, which several sellers share.
    Document.objects.filter(pk__in=ids).update(sender=sender)
    SenderLesson.objects.filter(learned_from__in=ids).update(sender=sender)
    lessons.apply(sender, actor=ACTOR)
    _update(len(ids), result)
    for sample in family:
        if sample is not teacher:
            _judge(teacher, sample, documents[sample.name].pk, result)
    lessons.switch_off(sender, actor=ACTOR)
    _update(0, result)
    result.counts["restored" if _state(ids) == before else "not restored"] += 1


def _add(workspace: Workspace, sender: Sender, sample: Sample) -> Document:
    values = {"name": sample.name, "file": "", "content_type": PDF, "size_bytes": 0, "sha256": "0" * 64}
    document = lifecycle.add_document(workspace, values)
    job = document.jobs.get().pk
    words.store(job, sample.pages)
    Document.objects.filter(pk=document.pk).update(words_job=job, sender=sender)
    fields.keep(document.pk, sample.fields, types.UNKNOWN)
    return document


def _update(number: int, result: Result) -> None:
    began = time.monotonic()
    while SenderUpdate.objects.exists():
        sender_updates.advance()
    if number:
        result.seconds.append((time.monotonic() - began) / number)


def _judge(teacher: Sample, sample: Sample, document_id: int, result: Result) -> None:
    rows = {row.name: row for row in fields.of_document(document_id)}
    learned, other = document_of(teacher.pages), document_of(sample.pages)
    for name, truth in sample.truth.items():
        if name not in teacher.truth:
            continue
        kind = FIELDS.get(name, "text")
        there = _places(learned, teacher.truth[name], kind)
        here = _places(other, truth, kind)
        if not any(_are_alike(one, another) for one in there for another in here):
            result.counts["not printed alike"] += 1
            continue
        row = rows.get(name)
        is_right = row is not None and is_same(row.value, truth, kind_of(truth, kind))
        verdict = "right" if is_right else "wrong" if row else "missing"
        result.counts[verdict] += 1
        result.by_field[name][verdict] += 1
        if not is_right:
            found = f"{row.value!r} from {row.source}" if row else "nothing"
            result.mistakes.append(f"{teacher.name} taught {sample.name}: {name} is {truth!r}, not {found}")


def _places(document: Any, value: str, kind: str) -> list[Candidate]:
    kind = kind_of(value, kind)
    read = whole(value, kind) if kind in READERS else None
    places: list[Candidate] = document.with_value(kind, value, read.normal if read else "")
    return places


def _are_alike(one: Candidate, other: Candidate) -> bool:
    if one.left[0] or other.left[0]:
        return one.left == other.left
    is_aside = abs(one.box[0] - other.box[0]) < ASIDE or abs(one.box[2] - other.box[2]) < ASIDE
    is_headed = bool(one.above) and one.above == other.above
    return is_aside and (is_headed or abs(one.box[1] - other.box[1]) < UP)


def _state(ids: list[int]) -> list[tuple[Any, ...]]:
    rows = DocumentField.objects.filter(document__in=ids).order_by("document", "name", "source")
    return list(rows.values_list("document", "name", "source", "value", "chosen", "in_conflict", "to_review"))


def _print(families: dict[str, list[Sample]], result: Result) -> None:
    counts = result.counts
    judged = counts["right"] + counts["wrong"] + counts["missing"]
    print(f"families: {len(families)}, documents: {sum(map(len, families.values()))}")
    print(f"values printed alike: {judged:,} (others: {counts['not printed alike']:,})")
    for verdict in ("right", "wrong", "missing"):
        print(f"  {verdict}: {counts[verdict]:,} ({counts[verdict] / max(judged, 1):.1%})")
    print(f"switched off: restored {counts['restored']}, not restored {counts['not restored']}")
    if result.seconds:
        print(f"milliseconds per document: {1000 * sum(result.seconds) / len(result.seconds):.0f}")
    for name, verdicts in sorted(result.by_field.items()):
        print(f"  {name}: {dict(verdicts)}")


if __name__ == "__main__":
    main()
