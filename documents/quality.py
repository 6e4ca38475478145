"""Counts how many documents needed no person, by week and by type."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta

from documents.listing import Filters, latest
from documents.models import Document
from workspaces.models import User

# The latest documents that are counted. More would take longer than a page may take.
MOST = 5000


@dataclass
class Share:
    """How many of some processed documents needed no person."""

    documents: int = 0
    # Corrected, classified, or with a problem that a person dismissed.
    touched: int = 0
    # Not touched yet, but in need of a person.
    to_review: int = 0

    @property
    def untouched(self) -> int:
        return self.documents - self.touched - self.to_review

    @property
    def share(self) -> float:
        return self.untouched / self.documents if self.documents else 0.0

    def add(self, *, is_touched: bool, is_to_review: bool) -> None:
        self.documents += 1
        self.touched += is_touched
        self.to_review += is_to_review and not is_touched


@dataclass(frozen=True)
class Quality:
    total: Share
    # By the Monday of the week of the upload, newest first; and by type, most documents first.
    by_week: dict[date, Share]
    by_type: dict[str, Share]
    # Whether there are older documents, which are not counted.
    is_cut: bool


def of_user(user: User, workspace_id: int | None) -> Quality:
    rows = latest(user, Filters(workspace_id, Document.Status.PROCESSED), MOST + 1)
    found = list(rows.values_list("created_at", "type", "touched_at", "to_review"))
    total, by_week, by_type = Share(), dict[date, Share](), dict[str, Share]()
    for created_at, type, touched_at, is_to_review in found[:MOST]:
        day = created_at.date()
        shares: Iterable[Share] = (
            total,
            by_week.setdefault(day - timedelta(days=day.weekday()), Share()),
            by_type.setdefault(type, Share()),
        )
        for share in shares:
            share.add(is_touched=touched_at is not None, is_to_review=is_to_review)
    most_first = dict(sorted(by_type.items(), key=lambda item: -item[1].documents))
    return Quality(total, dict(sorted(by_week.items(), reverse=True)), most_first, len(found) > MOST)
