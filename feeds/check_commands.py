"""The commands `manage.py feed check` and `feed add --check`, which fetch feeds at once and show the result."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any

from feeds import checking, sources
from feeds.checking import Brought, Checked
from feeds.fetching import FetchFailed
from feeds.models import FeedSource, RawArticle
from feeds.reading import ReadFailed
from feeds.sources import AlreadyThere, NotAdded
from work import clock
from work.operations.commands import AddVerb, Answer, Exit, Failure, actor_of, add_actor, clean, identifier, table

# Fetching is mostly waiting. The results of a batch are held in memory until all of its feeds have answered.
AT_ONCE = 8
# How many new articles a rehearsal lists.
MOST_NAMED = 20
ANSWERED, UNCHANGED, FAILED, NOT_FOUND = "answered", "unchanged", "failed", "not found"
NUMBERS = ("new", "known", "refused")


def add_verbs(add: AddVerb) -> None:
    asking = add("check", check, "Fetch feeds now, even if they are paused or not due, and show the results.")
    asking.add_argument("ids", metavar="ID", type=identifier, nargs="*")
    asking.add_argument("--all", action="store_true", help="check all feeds that are not paused")
    asking.add_argument("--rehearse", action="store_true", help="show what a check would find, and store nothing")
    add_actor(asking)


def check(*, ids: list[int], all: bool, rehearse: bool, actor: str | None, **_: Any) -> Answer:
    if bool(ids) == all:
        raise Failure("Give either feed IDs or --all.", Exit.USAGE, "usage")
    feeds = list(_chosen(ids))
    rows = [{"id": id, "result": NOT_FOUND, **_nothing()} for id in ids if id not in {feed.pk for feed in feeds}]
    if rehearse:
        rows += [_foreseen(feed) for feed in feeds]
    else:
        rows += [_told(checked) for checked in _settled(feeds, actor_of(actor))]
    return Answer({"rehearsed": rehearse, "feeds": rows}, _text(rows, rehearse=rehearse), exit_of(rows))


def add_what_answers(url: str, title: str, actor: str) -> tuple[FeedSource, dict[str, Any]]:
    """Fetch a feed and add it with its articles. Raises NotAdded, also if the URL does not answer with a feed."""
    spelled = sources.addable(url)
    brought = checking.tried(FeedSource(url=spelled))
    if isinstance(brought, FetchFailed | ReadFailed):
        raise NotAdded(brought.code, str(brought)) from brought
    if isinstance(brought, Exception):
        raise brought
    _expect_new(brought.answer.moved_to)
    feed = sources.add(spelled, title=title, actor=actor)
    checked = checking.settle(feed, brought, actor=actor, since=clock.now())
    if checked.code == "removed":
        raise NotAdded(checked.code, checked.failure)
    feed.refresh_from_db()
    return feed, _told(checked)


def found_of(row: dict[str, Any]) -> str:
    """Return sentences such as "Found 3 new, 12 known, 1 refused. Items that could not be stored: 1. …"."""
    if row["result"] == FAILED:
        return f"No articles were stored. {row['message']}"
    found = f"Found {', '.join(f'{row[name]} {name}' for name in NUMBERS)}."
    return f"{found} {row['message']}" if row["message"] else found


def exit_of(rows: list[dict[str, Any]]) -> Exit:
    results = {row["result"] for row in rows}
    return Exit.NOT_FOUND if NOT_FOUND in results else Exit.REFUSED if FAILED in results else Exit.DONE


def _expect_new(moved_to: str) -> None:
    """Raises AlreadyThere if the new address belongs to another feed. Other objections don't matter here: the feed
    then keeps its old address.
    """
    try:
        if moved_to:
            sources.addable(moved_to)
    except AlreadyThere:
        raise
    except NotAdded:
        return


def _chosen(ids: list[int]) -> Iterator[FeedSource]:
    if not ids:
        yield from FeedSource.objects.filter(paused_at__isnull=True).order_by("id")
    found = FeedSource.objects.in_bulk(ids)
    # A feed that is named twice is checked once.
    yield from (found[id] for id in dict.fromkeys(ids) if id in found)


def _settled(feeds: list[FeedSource], actor: str) -> Iterator[Checked]:
    with ThreadPoolExecutor(AT_ONCE, "feeds") as threads:
        for start in range(0, len(feeds), AT_ONCE):
            some = feeds[start : start + AT_ONCE]
            brought: list[Brought | Exception] = list(threads.map(checking.tried, some))
            for feed, each in zip(some, brought, strict=True):
                yield checking.settle(feed, each, actor=actor, since=clock.now())


def _told(checked: Checked) -> dict[str, Any]:
    said = asdict(checked)
    result = FAILED if checked.failure else UNCHANGED if checked.unchanged else ANSWERED
    row = {"id": checked.feed_id, "result": result, **_nothing()}
    row |= {name: said[name] or None for name in ("code", "next_check_at")}
    row["message"] = checked.failure or checked.flaw or None
    return row if checked.failure else row | {name: said[name] for name in NUMBERS}


def _foreseen(feed: FeedSource) -> dict[str, Any]:
    row = {"id": feed.pk, "result": FAILED, **_nothing()}
    try:
        found = checking.rehearse(feed)
    except (FetchFailed, ReadFailed) as error:
        return row | {"code": error.code, "message": str(error)}
    numbers = {"new": len(found.sorted.new), "known": found.sorted.known, "refused": found.sorted.refused}
    newest = sorted(found.sorted.new, key=lambda article: article.happened_at, reverse=True)
    named = [_named(article) for article in newest[:MOST_NAMED]]
    return row | {"result": ANSWERED, **numbers, "message": found.flaw or None, "articles": named}


def _named(article: RawArticle) -> dict[str, Any]:
    return {"url": article.url, "title": article.title, "published_at": article.published_at}


def _nothing() -> dict[str, Any]:
    return dict.fromkeys((*NUMBERS, "code", "message", "next_check_at", "articles"))


def _text(rows: list[dict[str, Any]], *, rehearse: bool) -> str:
    parts = ["Preview: nothing was stored."] if rehearse else []
    parts.append(table(rows, "id", "result", *NUMBERS, "next_check_at"))
    parts += [clean(f"Feed {row['id']}: {row['message']}") for row in rows if row["message"]]
    for row in rows:
        if row["articles"]:
            parts.append(f"New articles of feed {row['id']}:")
            parts += [clean(f"  {each['title']}  {each['url']}") for each in row["articles"]]
    return "\n".join(parts)
