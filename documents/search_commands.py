"""The commands `manage.py document search` and `manage.py document index`."""

import argparse
from dataclasses import asdict
from typing import Any

from documents import indexing, sniffing
from documents.models import Document
from documents.search import MOST_AT_ONCE, WAYS, search
from work.operations.commands import AddVerb, Answer, clean, fields
from workspaces.commands import find_workspace
from workspaces.models import Workspace


def add_verbs(add: AddVerb) -> None:
    searching = add("search", find, "Search documents by words and meaning, best matches first.")
    searching.add_argument("text", metavar="TEXT", help='words, "a phrase", -without, begin*')
    searching.add_argument("--workspace", metavar="WORKSPACE", help="name or id")
    searching.add_argument("--by", choices=WAYS, default="both", help="way of searching (default: %(default)s)")
    searching.add_argument("--type", metavar="TYPE", type=content_type, help="type of the documents: pdf, docx, …")
    searching.add_argument("--status", choices=Document.Status.values)
    searching.add_argument("--limit", type=limit, default=20, help="at most this many (default: %(default)s)")
    making = add("index", index, "Create the missing search indexes in this database.")
    making.add_argument("--rebuild", action="store_true", help="create the index of words again even if it exists")


def find(
    *, text: str, workspace: str | None, by: str, type: str | None, status: str | None, limit: int, **_: Any
) -> Answer:
    visible = Workspace.objects.all()
    if workspace:
        visible = visible.filter(pk=find_workspace(workspace).pk)
    results = search(visible, text, by=by, content_type=type, status=status, limit=limit)
    lines = []
    for hit in results.hits:
        page = f", page {hit.page}" if hit.page else ""
        lines.append(clean(f"{hit.document_id}  {hit.workspace}/{hit.name}{page}  ({hit.why})"))
        marked = "".join(f"[{part.text}]" if part.is_match else part.text for part in hit.snippet)
        lines += [f"    {clean(marked)}", ""]
    lines += [] if results.hits else ["No results."]
    data = {
        "hits": [asdict(hit) | {"snippet": [part._asdict() for part in hit.snippet]} for hit in results.hits],
        "how": results.how,
        "notes": results.notes,
        "has_more": results.has_more,
    }
    return Answer(data, "\n".join([*lines, *map(clean, results.notes)]).rstrip())


def index(*, rebuild: bool, **_: Any) -> Answer:
    state = indexing.create_indexes(rebuild=rebuild)
    return Answer(state, fields(state))


def content_type(text: str) -> str:
    media_type = sniffing.SUFFIXES.get(f".{text.lower()}", text)
    if media_type not in sniffing.LABELS:
        raise argparse.ArgumentTypeError(f"unknown type {text!r}; use {sniffing.TAKEN}")
    return media_type


def limit(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= MOST_AT_ONCE):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to {MOST_AT_ONCE}")
    return int(text)
