from typing import Annotated, Any, Literal

from django.http import HttpRequest
from ninja import Query, Router, Schema
from pydantic import ConfigDict, Field

from api.callers import caller_of
from api.frame import Out, responses
from api.ids import Id
from api.moments import Moment
from documents import search
from documents.search import MOST_AT_ONCE, MOST_IN_ALL
from documents.search.query import MOST_CHARACTERS
from workspaces.models import Workspace

routes = Router(tags=["search"])


class SnippetPartOut(Out):
    text: str
    is_match: bool


class HitOut(Out):
    document_id: int
    chunk_id: int
    name: str
    workspace: str
    content_type: str
    position: int
    page: int | None
    snippet: list[SnippetPartOut]
    why: Annotated[str, Field(description="words, meaning or both")]
    score: float
    words_place: int | None
    meaning_place: int | None
    nearness: float | None


class SearchOut(Out):
    hits: list[HitOut]
    how: Annotated[list[str], Field(description="search methods that were used: words, meaning")]
    notes: Annotated[list[str], Field(description="reasons why results may be missing")]
    has_more: bool


class Wanted(Schema):
    model_config = ConfigDict(extra="forbid")

    q: Annotated[
        str, Field(min_length=1, max_length=MOST_CHARACTERS, description='words, "a phrase", -excluded, prefix*')
    ]
    by: Literal["both", "words", "meaning"] = "both"
    workspace_id: Id | None = None
    content_type: Annotated[str | None, Field(max_length=100)] = None
    status: Literal["processing", "processed", "failed"] | None = None
    created_after: Annotated[Moment | None, Field(description="only documents uploaded from this time on")] = None
    created_before: Moment | None = None
    limit: Annotated[int, Field(ge=1, le=MOST_AT_ONCE)] = 20
    after: Annotated[int, Field(ge=0, le=MOST_IN_ALL, description="number of hits to skip")] = 0


@routes.get("/search", response=responses({200: SearchOut}), summary="Search documents")
def find(request: HttpRequest, wanted: Query[Wanted]) -> dict[str, Any]:
    """Search documents by words and meaning, best hits first."""
    caller = caller_of(request)
    visible = Workspace.objects.for_user(caller.user)
    if wanted.workspace_id is not None:
        visible = visible.filter(pk=caller.find(Workspace, wanted.workspace_id).pk)
    results = search.search(
        visible,
        wanted.q,
        by=wanted.by,
        content_type=wanted.content_type,
        status=wanted.status,
        since=wanted.created_after,
        until=wanted.created_before,
        limit=wanted.limit,
        after=wanted.after,
    )
    hits = [HitOut.of(hit, snippet=[SnippetPartOut.of(part) for part in hit.snippet]) for hit in results.hits]
    return SearchOut.of(results, hits=hits)
