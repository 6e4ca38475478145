from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from django.db.models import Q, QuerySet

from documents.models import Document, DocumentChunk


@dataclass(frozen=True)
class Scope:
    """Where is looked: nothing outside of it is found, counted or told."""

    workspaces: tuple[int, ...]
    content_type: str | None = None
    status: str | None = None
    # When the document came in: from the first moment on, and before the second.
    since: datetime | None = None
    until: datetime | None = None

    @cached_property
    def _of_documents(self) -> dict[str, Any]:
        wanted = {
            "content_type": self.content_type,
            "status": self.status,
            "created_at__gte": self.since,
            "created_at__lt": self.until,
        }
        return {name: value for name, value in wanted.items() if value is not None}

    @property
    def is_narrow(self) -> bool:
        """Whether it is more than workspaces."""
        return bool(self._of_documents)

    def documents(self) -> QuerySet[Document]:
        return Document.objects.filter(workspace__in=self.workspaces, purged_at__isnull=True, **self._of_documents)

    def chunks(self) -> QuerySet[DocumentChunk]:
        """Without a look at their documents where none is needed: what has been purged has no chunks, and
        `still_there` looks again.
        """
        narrow = {f"document__{name}": value for name, value in self._of_documents.items()}
        return DocumentChunk.objects.filter(workspace__in=self.workspaces, **narrow)

    def still_there(self, ids: Iterable[int]) -> QuerySet[DocumentChunk]:
        narrow = {f"document__{name}": value for name, value in self._of_documents.items()}
        return DocumentChunk.objects.filter(
            Q(document__workspace__in=self.workspaces),
            pk__in=list(ids),
            workspace__in=self.workspaces,
            document__purged_at__isnull=True,
            **narrow,
        )
