"""Finds chunks of documents by combining two rankings: by words and by meaning."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice

import structlog
from django.db.models import Q, QuerySet

from documents import embedding, fulltext
from documents.embedding import EmbeddingFailed
from documents.indexing import current_model
from documents.models import DocumentChunk
from documents.models.columns import as_line
from documents.search import meaning, words
from documents.search.query import Query, parse
from documents.search.results import Hit as Hit
from documents.search.results import Part as Part
from documents.search.results import SearchResults as SearchResults
from documents.search.scope import Scope
from documents.search.snippets import snippet
from workspaces.models import Workspace

log = structlog.get_logger(__name__)

WAYS = {"both": ("words", "meaning"), "words": ("words",), "meaning": ("meaning",)}
# Results per document. A long document on the topic must not fill all results.
MOST_OF_A_DOCUMENT = 3
MOST_AT_ONCE = 100
# Results in total. Readers rarely go further, and the order of later results means little.
MOST_IN_ALL = 300
# Candidates per method. The larger number is used if too many of the first candidates belong to the same documents.
CANDIDATES = (100, 400)
# The constant of reciprocal rank fusion, the formula that combines both rankings. 60 is the usual value.
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
    """Return the best matching chunks in these workspaces, skipping the first `after` results.

    No text raises an error.
    """
    wanted = parse(text)
    scope = Scope(tuple(visible.order_by("pk").values_list("pk", flat=True)), content_type, status, since, until)
    if not wanted.terms or not scope.workspaces:
        return SearchResults(notes=wanted.notes)
    return _Search(wanted, scope, by).results(min(limit, MOST_AT_ONCE), min(after, MOST_IN_ALL))


class _Search:
    def __init__(self, wanted: Query, scope: Scope, by: str) -> None:
        self.wanted, self.scope = wanted, scope
        self.notes = list(wanted.notes)
        self.how = list(WAYS[by])
        self.model = current_model()
        self.vector = self._embed_query() if "meaning" in self.how else b""
        if "words" in self.how and not fulltext.has_index():
            self.notes.append(WITHOUT_INDEX)

    def results(self, limit: int, after: int) -> SearchResults:
        last = min(after + limit, MOST_IN_ALL)
        best: list[tuple[int, _Candidate]] = []
        # A strict query rejects candidates, so start with the larger number.
        for most in CANDIDATES[1:] if self.wanted.is_strict else CANDIDATES:
            candidates, is_all = self._candidates(most)
            best = list(islice(self._spread(candidates), last + 1))
            if len(best) > last or is_all:
                break
        hits = self._hits(dict(best[after:last]))
        has_more = len(best) > last and last < MOST_IN_ALL
        return SearchResults(tuple(hits), tuple(self.how), tuple(self.notes), has_more=has_more)

    def _embed_query(self) -> bytes:
        """Return the vector of the query, and add a note on documents that cannot be found by meaning."""
        current = self.model.name
        try:
            vector = embedding.of_query(self.wanted.text)
        except EmbeddingFailed as error:
            log.warning("search.not_understood", model=current, error=str(error))
            self.how.remove("meaning")
            why = str(error).rstrip(".")
            self.notes.append(f"Searched by words only, because the model for meaning failed ({why}).")
            return b""
        others = Q(embedding_model__gt=current) | Q(embedding_model__gt="", embedding_model__lt=current)
        number = len(self.scope.documents().filter(others).values_list("pk")[: COUNTED + 1])
        if number:
            count = f"More than {COUNTED}" if number > COUNTED else str(number)
            have, them = ("document has", "it") if number == 1 else ("documents have", "them")
            problem = f"{have} vectors of another model than {current} and can be found by words only."
            self.notes.append(f"{count} {problem} Process {them} again.")
        return vector

    def _candidates(self, most: int) -> tuple[dict[int, _Candidate], bool]:
        """Return the candidates by chunk ID, and whether these are all."""
        candidates: dict[int, _Candidate] = {}
        lists: dict[str, list[int]] = {}
        if "words" in self.how:
            lists["words"] = words.best(self.wanted, self.scope, most)
        if "meaning" in self.how:
            near = meaning.nearest(self.vector, self.model, self.scope, most)
            lists["meaning"] = [id for id, _ in near]
        for way, ids in lists.items():
            for place, id in enumerate(ids, 1):
                candidates.setdefault(id, _Candidate()).places[way] = place
        if "meaning" in self.how:
            for id, nearness in near:
                candidates[id].nearness = nearness
        return candidates, all(len(ids) < most for ids in lists.values())

    def _spread(self, candidates: dict[int, _Candidate]) -> Iterator[tuple[int, _Candidate]]:
        """Yield candidates, best first, up to the limit per document. Leave out deleted and rejected chunks."""
        document_of = dict(self.scope.existing(candidates).values_list("pk", "document_id"))
        rejected: set[int] = set()
        if self.wanted.is_strict:
            # Chunks with a similar meaning may contain excluded words or lack a quoted phrase.
            ids = [id for id, candidate in candidates.items() if "words" not in candidate.places]
            texts = DocumentChunk.objects.filter(pk__in=ids).values_list("pk", "text")
            rejected = {id for id, text in texts if not self.wanted.allows(as_line(text))}
        yielded: Counter[int] = Counter()
        for id, candidate in sorted(candidates.items(), key=lambda each: (-each[1].score, each[0])):
            document = document_of.get(id)
            if document is None or id in rejected or yielded[document] == MOST_OF_A_DOCUMENT:
                continue
            yielded[document] += 1
            yield id, candidate

    def _hits(self, candidates: dict[int, _Candidate]) -> Iterator[Hit]:
        rows = self.scope.existing(candidates).select_related("document__workspace")
        shown = ("position", "page", "text", "document__name", "document__content_type", "document__workspace__name")
        chunks = {chunk.pk: chunk for chunk in rows.only(*shown)}
        for id, candidate in candidates.items():
            # The document may have been published again meanwhile, which replaces its chunks.
            if (chunk := chunks.get(id)) is None:
                continue
            yield Hit(
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
