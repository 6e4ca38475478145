from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from django.db.models import Q, QuerySet

from documents.models import Document, DocumentChunk


@dataclass(frozen=True)
class Scope:
    """The limits of a search. Documents outside these limits are neither found nor counted nor shown."""

    workspaces: tuple[int, ...]
    content_type: str | None = None
    status: str | None = None
    # The document was created at or after `since` and before `until`.
    since: datetime | None = None
    until: datetime | None = None

    @cached_property
    def _filters(self) -> dict[str, Any]:
        filters = {
            "content_type": self.content_type,
            "status": self.status,
            "created_at__gte": self.since,
            "created_at__lt": self.until,
        }
        return {name: value for name, value in filters.items() if value is not None}

    @property
    def is_narrow(self) -> bool:
        """Return whether there are filters besides the workspaces."""
        return bool(self._filters)

    def documents(self) -> QuerySet[Document]:
        return Document.objects.filter(workspace__in=self.workspaces, purged_at__isnull=True, **self._filters)

    def chunks(self) -> QuerySet[DocumentChunk]:
        """Return the chunks. Join their documents only if a filter needs them.

        There is no filter for purged documents: they have no chunks, and `existing` checks this again.
        """
        filters = {f"document__{name}": value for name, value in self._filters.items()}
        return DocumentChunk.objects.filter(workspace__in=self.workspaces, **filters)

    def existing(self, ids: Iterable[int]) -> QuerySet[DocumentChunk]:
        is_visible = Q(document__workspace__in=self.workspaces)
        return self.chunks().filter(is_visible, pk__in=list(ids), document__purged_at__isnull=True)
