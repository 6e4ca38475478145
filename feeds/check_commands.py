"""The commands `manage.py feed check` and `feed add --check`, which fetch feeds at once and show the result."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from feeds import checking, sources
from feeds.checking import CheckResult
from feeds.fetching import FetchFailed
from feeds.models import FeedSource
from feeds.reading import ReadFailed
from feeds.sources import AlreadyThere, NotAdded
from work import clock
from work.operations.commands import AddVerb, Answer, Exit, Failure, actor_of, add_actor, clean, identifier, table

# Feeds to fetch at once. Fetching is mostly waiting, but the results of a batch are held in memory until all of its
# feeds have answered.
AT_ONCE = 8
# Most new articles that a rehearsal lists.
MOST_NAMED = 20
ANSWERED, UNCHANGED, FAILED, NOT_FOUND = "answered", "unchanged", "failed", "not found"
NUMBERS = ("new", "known", "refused")


def add_verbs(add: AddVerb) -> None:
    parser = add("check", check, "Fetch feeds now, even if they are paused or not due, and show the results.")
    parser.add_argument("ids", metavar="ID", type=identifier, nargs="*")
    parser.add_argument("--all", action="store_true", help="check all feeds that are not paused")
    parser.add_argument("--rehearse", action="store_true", help="show what a check would find, and store nothing")
    add_actor(parser)


def check(*, ids: list[int], all: bool, rehearse: bool, actor: str | None, **_: Any) -> Answer:
    if bool(ids) == all:
        raise Failure("Give either feed IDs or --all.", Exit.USAGE, "usage")
    if ids:
        feed_of = FeedSource.objects.in_bulk(ids)
        # A feed that is named twice is checked once.
        feeds = [feed_of[id] for id in dict.fromkeys(ids) if id in feed_of]
    else:
        feeds = list(FeedSource.objects.filter(paused_at__isnull=True).order_by("id"))
    rows = [{"id": id, "result": NOT_FOUND, **_nothing()} for id in ids if id not in {feed.pk for feed in feeds}]
    if rehearse:
        rows += [_preview_row(feed) for feed in feeds]
    else:
        with ThreadPoolExecutor(AT_ONCE, "feeds") as threads:
            for start in range(0, len(feeds), AT_ONCE):
                batch = feeds[start : start + AT_ONCE]
                for feed, result in zip(batch, list(threads.map(checking.try_fetch, batch)), strict=True):
                    checked = checking.store_result(feed, result, actor=actor_of(actor), since=clock.now())
                    rows.append(_result_row(checked))
    parts = ["Preview: nothing was stored."] if rehearse else []
    parts.append(table(rows, "id", "result", *NUMBERS, "next_check_at"))
    parts += [clean(f"Feed {row['id']}: {row['message']}") for row in rows if row["message"]]
    for row in rows:
        if row["articles"]:
            parts.append(f"New articles of feed {row['id']}:")
            parts += [clean(f"  {each['title']}  {each['url']}") for each in row["articles"]]
    return Answer({"rehearsed": rehearse, "feeds": rows}, "\n".join(parts), exit_of(rows))


def fetch_and_add(url: str, title: str, actor: str) -> tuple[FeedSource, dict[str, Any]]:
    """Fetch a feed and add it with its articles. Raises NotAdded, also if the URL does not answer with a feed."""
    canonical_url = sources.expect_new(url)
    result = checking.try_fetch(FeedSource(url=canonical_url))
    if isinstance(result, FetchFailed | ReadFailed):
        raise NotAdded(result.code, str(result)) from result
    if isinstance(result, Exception):
        raise result
    if moved_to := result.response.moved_to:
        try:
            sources.expect_new(moved_to)
        except NotAdded as refused:
            # Other objections to the new address don't matter here: the feed then keeps its old one.
            if isinstance(refused, AlreadyThere):
                raise
    feed = sources.add(canonical_url, title=title, actor=actor)
    checked = checking.store_result(feed, result, actor=actor, since=clock.now())
    if checked.code == "removed":
        raise NotAdded(checked.code, checked.failure)
    feed.refresh_from_db()
    return feed, _result_row(checked)


def summary_of(row: dict[str, Any]) -> str:
    """Return sentences such as "Found 3 new, 12 known, 1 refused. Items that could not be stored: 1. …"."""
    if row["result"] == FAILED:
        return f"No articles were stored. {row['message']}"
    numbers = f"Found {', '.join(f'{row[name]} {name}' for name in NUMBERS)}."
    return f"{numbers} {row['message']}" if row["message"] else numbers


def exit_of(rows: list[dict[str, Any]]) -> Exit:
    results = {row["result"] for row in rows}
    return Exit.NOT_FOUND if NOT_FOUND in results else Exit.REFUSED if FAILED in results else Exit.DONE


def _result_row(checked: CheckResult) -> dict[str, Any]:
    result = FAILED if checked.failure else UNCHANGED if checked.unchanged else ANSWERED
    row = {"id": checked.feed_id, "result": result, **_nothing()}
    row |= {"code": checked.code or None, "next_check_at": checked.next_check_at}
    row["message"] = checked.failure or checked.flaw or None
    return row if checked.failure else row | {name: getattr(checked, name) for name in NUMBERS}


def _preview_row(feed: FeedSource) -> dict[str, Any]:
    row = {"id": feed.pk, "result": FAILED, **_nothing()}
    try:
        preview = checking.preview(feed)
    except (FetchFailed, ReadFailed) as error:
        return row | {"code": error.code, "message": str(error)}
    selection = preview.selection
    newest = sorted(selection.new, key=lambda article: article.happened_at, reverse=True)
    return row | {
        "result": ANSWERED,
        "new": len(selection.new),
        "known": selection.known,
        "refused": selection.refused,
        "message": preview.flaw or None,
        "articles": [
            {"url": article.url, "title": article.title, "published_at": article.published_at}
            for article in newest[:MOST_NAMED]
        ],
    }


def _nothing() -> dict[str, Any]:
    return dict.fromkeys((*NUMBERS, "code", "message", "next_check_at", "articles"))
