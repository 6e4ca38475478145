"""Finds pieces of documents by their words and their meaning combined."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice

import structlog
from django.db.models import Q, QuerySet

from documents import embedding, fulltext
from documents.embedding import EmbeddingFailed
from documents.indexing import model_of_today
from documents.models import DocumentChunk
from documents.models.columns import as_line
from documents.search import meaning, words
from documents.search import wanted as typed
from documents.search.found import Hit as Hit
from documents.search.found import Part as Part
from documents.search.found import SearchResults as SearchResults
from documents.search.scope import Scope
from documents.search.snippets import snippet
from documents.search.wanted import Wanted
from workspaces.models import Workspace

log = structlog.get_logger(__name__)

WAYS = {"both": ("words", "meaning"), "words": ("words",), "meaning": ("meaning",)}
# Chunks per document. A long document on the topic must not fill all results.
MOST_OF_A_DOCUMENT = 3
MOST_AT_ONCE = 100
# Results in total. Readers rarely go further, and the ranking of later ones means little.
MOST_IN_ALL = 300
# Candidates per method; the larger number applies if too many of the first belong to the same documents.
CANDIDATES = (100, 400)
# The constant of reciprocal rank fusion, which combines both rankings; 60 is the usual value.
RANK_CONSTANT = 60
COUNTED = 1000
WITHOUT_INDEX = "This database has no index of words, so the newest matches are shown first."


@dataclass
class _Candidate:
    places: dict[str, int] = field(default_factory=dict)
    nearness: float | None = None

    @property
    def score(self) -> float:
        return sum(1 / (RANK_CONSTANT + place) for place in self.places.values())

    @property
    def why(self) -> str:
        return "both" if len(self.places) > 1 else next(iter(self.places))


def search(
    visible: QuerySet[Workspace],
    text: str,
    *,
    by: str = "both",
    content_type: str | None = None,
    status: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int = 20,
    after: int = 0,
) -> SearchResults:
    """Return the best pieces of documents in these workspaces, skipping the first `after`.

    Never raises for any text.
    """
    wanted = typed.read(text)
    scope = Scope(tuple(visible.order_by("pk").values_list("pk", flat=True)), content_type, status, since, until)
    if not wanted.terms or not scope.workspaces:
        return SearchResults(notes=wanted.notes)
    return _Search(wanted, scope, by).found(min(limit, MOST_AT_ONCE), min(after, MOST_IN_ALL))


class _Search:
    def __init__(self, wanted: Wanted, scope: Scope, by: str) -> None:
        self.wanted, self.scope = wanted, scope
        self.notes = list(wanted.notes)
        self.how = list(WAYS[by])
        self.model = model_of_today()
        self.vector = self._understood() if "meaning" in self.how else b""
        if "words" in self.how and not fulltext.is_there():
            self.notes.append(WITHOUT_INDEX)

    def found(self, limit: int, after: int) -> SearchResults:
        last = min(after + limit, MOST_IN_ALL)
        chosen: list[tuple[int, _Candidate]] = []
        # A strict query rejects candidates, so it starts with the larger number.
        for most in CANDIDATES[1:] if self.wanted.is_strict else CANDIDATES:
            candidates, is_all = self._candidates(most)
            chosen = list(islice(self._spread(candidates), last + 1))
            if len(chosen) > last or is_all:
                break
        hits = self._hits(dict(chosen[after:last]))
        return SearchResults(
            tuple(hits), tuple(self.how), tuple(self.notes), has_more=len(chosen) > last and last < MOST_IN_ALL
        )

    def _understood(self) -> bytes:
        try:
            vector = embedding.of_query(self.wanted.text)
        except EmbeddingFailed as error:
            log.warning("search.not_understood", model=self.model.name, error=str(error))
            self.how.remove("meaning")
            why = str(error).rstrip(".")
            self.notes.append(f"Searched by words only, because the model for meaning failed ({why}).")
            return b""
        self.notes += self._of_other_models()
        return vector

    def _of_other_models(self) -> Iterator[str]:
        current = self.model.name
        others = Q(embedding_model__gt=current) | Q(embedding_model__gt="", embedding_model__lt=current)
        rows = self.scope.documents().filter(others)
        number = len(rows.values_list("pk")[: COUNTED + 1])
        if number:
            said = f"More than {COUNTED}" if number > COUNTED else str(number)
            have = f"{'document has' if number == 1 else 'documents have'} vectors of another model than {current}"
            again = "Process it again." if number == 1 else "Process them again."
            yield f"{said} {have} and can be found by words only. {again}"

    def _candidates(self, most: int) -> tuple[dict[int, _Candidate], bool]:
        """Return the candidates by chunk ID, and whether there are no others."""
        found: dict[int, _Candidate] = {}
        lists: dict[str, list[int]] = {}
        if "words" in self.how:
            lists["words"] = words.best(self.wanted, self.scope, most)
        if "meaning" in self.how:
            near = meaning.nearest(self.vector, self.model, self.scope, most)
            lists["meaning"] = [id for id, _ in near]
        for way, ids in lists.items():
            for place, id in enumerate(ids, 1):
                found.setdefault(id, _Candidate()).places[way] = place
        if "meaning" in self.how:
            for id, nearness in near:
                found[id].nearness = nearness
        return found, all(len(ids) < most for ids in lists.values())

    def _spread(self, candidates: dict[int, _Candidate]) -> Iterator[tuple[int, _Candidate]]:
        """Yield the best candidates first, with a limit per document, leaving out deleted and rejected ones."""
        document_of = dict(self.scope.still_there(candidates).values_list("pk", "document_id"))
        refused = self._refused(id for id, candidate in candidates.items() if "words" not in candidate.places)
        taken: dict[int, int] = {}
        for id, candidate in sorted(candidates.items(), key=lambda each: (-each[1].score, each[0])):
            document = document_of.get(id)
            if document is None or id in refused or taken.get(document, 0) == MOST_OF_A_DOCUMENT:
                continue
            taken[document] = taken.get(document, 0) + 1
            yield id, candidate

    def _refused(self, ids: Iterable[int]) -> set[int]:
        """Return the chunks that are similar in meaning but contain excluded words or lack a quoted phrase."""
        if not self.wanted.is_strict:
            return set()
        texts = DocumentChunk.objects.filter(pk__in=list(ids)).values_list("pk", "text")
        return {id for id, text in texts if not self.wanted.allows(as_line(text))}

    def _hits(self, chosen: dict[int, _Candidate]) -> Iterator[Hit]:
        rows = self.scope.still_there(chosen).select_related("document__workspace")
        shown = ("position", "page", "text", "document__name", "document__content_type", "document__workspace__name")
        there = {chunk.pk: chunk for chunk in rows.only(*shown)}
        for id, candidate in chosen.items():
            # The document may have been published again since the choice, which replaces its chunks.
            if (chunk := there.get(id)) is not None:
                yield self._hit(chunk, candidate)

    def _hit(self, chunk: DocumentChunk, candidate: _Candidate) -> Hit:
        return Hit(
            chunk_id=chunk.pk,
            document_id=chunk.document_id,
            name=chunk.document.name,
            workspace=chunk.document.workspace.name,
            content_type=chunk.document.content_type,
            position=chunk.position,
            page=chunk.page,
            snippet=snippet(chunk.text, self.wanted),
            why=candidate.why,
            score=candidate.score,
            words_place=candidate.places.get("words"),
            meaning_place=candidate.places.get("meaning"),
            nearness=candidate.nearness,
        )
