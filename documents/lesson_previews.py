"""Shows what the lessons of a sender would change on the documents that are there already. Changes nothing."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from documents import fields, learning, senders, types, words
from documents.choosing import SENDER, choose, normal
from documents.models import DocumentField, FieldCorrection, Sender

# The latest documents that are examined, of the sender and of no known sender, because somebody waits for the answer.
MOST_DOCUMENTS = 50
IMPROVED, CHANGED, WORSE = "improved", "changed", "worse"


@dataclass(frozen=True)
class Change:
    document_id: int
    field: str
    before: str | None
    after: str | None
    # `improved`: right now, found now, or surer now. `worse`: no longer what a person confirmed. Otherwise `changed`.
    verdict: str


@dataclass(frozen=True)
class LessonPreview:
    documents: int
    # Whether the sender has more documents than were examined.
    is_cut: bool
    changes: list[Change]

    @property
    def counts(self) -> dict[str, int]:
        verdicts = Counter(change.verdict for change in self.changes)
        return {verdict: verdicts[verdict] for verdict in (IMPROVED, CHANGED, WORSE)}

    @property
    def sentence(self) -> str:
        number = f"{'the latest ' if self.is_cut else ''}{self.documents} document{'s' * (self.documents != 1)}"
        counts = ", ".join(f"{count} {verdict}" for verdict, count in self.counts.items())
        return f"Of the values of {number}: {counts}."


def preview(sender: Sender) -> LessonPreview:
    documents = senders.possible_documents(sender).order_by("-id")
    rows = list(documents.values("pk", "words_job", "type", "sender_id")[: MOST_DOCUMENTS + 1])
    known = types.of_workspace(sender.workspace_id)
    changes: list[Change] = []
    number = 0
    for row in rows[:MOST_DOCUMENTS]:
        pages = words.load(row["words_job"])
        if row["sender_id"] is None and senders.printed_on(sender.workspace_id, pages) != sender.pk:
            continue
        number += 1
        values = learning.values_for(sender.pk, pages)
        changes += _changes(row["pk"], values, known.get(row["type"]))
    return LessonPreview(number, len(rows) > MOST_DOCUMENTS, changes)


def _changes(id: int, values: list[dict[str, Any]], spec: types.TypeSpec) -> list[Change]:
    stored = list(DocumentField.objects.filter(document=id).order_by("id"))
    before = {row.name: (row.value, row.to_review, row.kind) for row in stored if row.chosen}
    others = [row for row in stored if row.source != SENDER]
    new = [*others, *(fields.row_of(id, value) for value in values)]
    choose(new, spec)
    after = {row.name: (row.value, row.to_review, row.kind) for row in new if row.chosen}
    corrections = dict(FieldCorrection.objects.filter(document=id).values_list("name", "value"))
    found = []
    for name in sorted(before.keys() | after.keys()):
        old, later = before.get(name), after.get(name)
        if verdict := _verdict(old, later, corrections.get(name)):
            found.append(Change(id, name, old[0] if old else None, later[0] if later else None, verdict))
    return found


def _verdict(before: tuple[str, bool, str] | None, after: tuple[str, bool, str] | None, correction: str | None) -> str:
    kind = (after or before or ("", False, ""))[2]
    old, new = (normal(each[0], kind) if each else "" for each in (before, after))
    if correction is not None:
        right = normal(correction, kind)
        if (old == right) == (new == right):
            return ""
        return WORSE if old == right else IMPROVED
    if old == new:
        return IMPROVED if before and after and before[1] and not after[1] else ""
    return IMPROVED if after and (not before or (before[1] and not after[1])) else CHANGED
