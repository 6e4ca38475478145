import sys
from argparse import ArgumentParser
from collections import Counter
from pathlib import Path
from typing import Any

from feeds import check_commands, feed_status, opml, sources
from feeds.models import FeedSource, RawArticle
from feeds.opml import MOST_BYTES, BadOpml
from feeds.sources import ADDED, ALREADY_THERE, TWICE, AlreadyThere, NotAdded
from work.operations.commands import (
    AddVerb,
    Answer,
    Exit,
    Failure,
    NounCommand,
    actor_of,
    add_actor,
    add_ids,
    add_limit,
    clean,
    events_about,
    fields,
    history,
    not_found,
    of_each,
    table,
)

COLUMNS = (
    *("id", "url", "title", "site_url", "state", "next_check_at", "checked_at", "succeeded_at", "failures"),
    *("failing_since", "last_error", "paused_at", "paused_by", "created_at"),
)
ARTICLE_COLUMNS = ("id", "title", "url", "published_at", "seen_at")
CHOICES = ("failing", "paused", "due")
EVENTS = 100
# A feed's articles are counted up to the first of these numbers, and named up to the second.
MOST_COUNTED = 10_000
MOST_NAMED = 5
# The file name that stands for standard input or standard output.
STANDARD = "-"


class Command(NounCommand):
    help = "Feeds, the sources of articles."

    def add_verbs(self, add: AddVerb) -> None:
        adding = add("add", self.add, "Add a feed.")
        adding.add_argument("url", metavar="URL")
        adding.add_argument("--title", default="", help="title of the feed (default: its own)")
        adding.add_argument(
            "--check",
            action="store_true",
            help="fetch it now; add it only if it is a feed and has not moved to the address of another one",
        )
        add_actor(adding)
        listing = add("list", self.list_feeds, "List feeds and their states, newest first.")
        chosen = listing.add_mutually_exclusive_group()
        for choice in CHOICES:
            chosen.add_argument(
                f"--{choice}", dest="choice", action="store_const", const=choice, help=f"only feeds that are {choice}"
            )
        add_limit(listing)
        add_ids(add("show", self.show, "Show a feed, its newest articles and its events."))
        check_commands.add_verbs(add)
        renaming = add("rename", self.rename, "Rename a feed.")
        add_ids(renaming)
        renaming.add_argument("title", metavar="TITLE", help='new title; "" for the title that the feed gives itself')
        add_actor(renaming)
        pausing = _of_several(add("pause", self.pause, "Pause feeds: they are not checked until they are resumed."))
        pausing.add_argument("--reason", default="", help="reason recorded in the history")
        _of_several(add("resume", self.resume, "Resume paused feeds and make them due at once."))
        _of_several(add("remove", self.remove, "Remove feeds that have no articles. Pause the others instead."))
        importing = add("import", self.take_in, "Add all feeds of an OPML list that another feed reader exported.")
        importing.add_argument("file", metavar="FILE", help="OPML file; - for standard input")
        importing.add_argument("--rehearse", action="store_true", help="only show what would happen to each feed")
        add_actor(importing)
        exporting = add("export", self.export, "Write all feeds as OPML, which other feed readers can import.")
        exporting.add_argument(
            "file", metavar="FILE", nargs="?", default=STANDARD, help="output file (default: standard output)"
        )
        exporting.add_argument("--force", action="store_true", help="overwrite an existing file")

    def add(self, *, url: str, title: str, check: bool, actor: str | None, **_: Any) -> Answer:
        try:
            if check:
                feed, row = check_commands.fetch_and_add(url, title, actor_of(actor))
                summary = check_commands.summary_of(row)
            else:
                feed, row = sources.add(url, title=title, actor=actor_of(actor)), None
                summary = "It is checked when the job runs next."
        except NotAdded as refused:
            details = {"id": refused.feed.pk} if isinstance(refused, AlreadyThere) else {}
            raise Failure(str(refused), Exit.REFUSED, refused.code, **details) from refused
        exit = check_commands.exit_of([row] if row else [])
        return Answer(_row(feed) | {"check": row}, clean(f"Added feed {feed.pk}, {feed.url}. {summary}"), exit)

    def list_feeds(self, *, choice: str | None, limit: int, before: int | None, **_: Any) -> Answer:
        matches = FeedSource.objects.all()
        matches = getattr(matches, choice)() if choice else matches
        matches = matches.filter(pk__lt=before) if before else matches
        feeds = list(matches.order_by("-id")[:limit])
        rows = [_row(feed) for feed in feeds]
        lines = [
            row | {"state": feed_status.state_text(feed), "next_check": feed_status.next_check_text(feed)}
            for row, feed in zip(rows, feeds, strict=True)
        ]
        return Answer({"feeds": rows}, table(lines, "id", "state", "next_check", "title", "url"))

    def show(self, *, id: int, **_: Any) -> Answer:
        feed = FeedSource.objects.filter(pk=id).first()
        if feed is None:
            raise not_found("feed", id, "`manage.py feed list` shows them")
        articles = RawArticle.objects.filter(feed=feed)
        number = articles.order_by()[: MOST_COUNTED + 1].count()
        newest = list(articles.order_by("-id").values(*ARTICLE_COLUMNS)[:MOST_NAMED])
        events = events_about("feed", id, EVENTS)
        number_text = f"over {MOST_COUNTED}" if number > MOST_COUNTED else str(number)
        about = fields(_row(feed) | {"state": feed_status.state_text(feed), "articles": number_text})
        parts = [about, table(newest, "id", "seen_at", "published_at", "title"), history(events)]
        data = _row(feed) | {"articles": number, "newest": newest, "events": events}
        return Answer(data, "\n\n".join(parts))

    def rename(self, *, id: int, title: str, actor: str | None, **_: Any) -> Answer:
        return _each([id], lambda feed: sources.rename(feed, title, actor=actor_of(actor)))

    def pause(self, *, ids: list[int], reason: str, actor: str | None, **_: Any) -> Answer:
        return _each(ids, lambda feed: sources.pause(feed, actor=actor_of(actor), reason=reason))

    def resume(self, *, ids: list[int], actor: str | None, **_: Any) -> Answer:
        return _each(ids, lambda feed: sources.resume(feed, actor=actor_of(actor)))

    def remove(self, *, ids: list[int], actor: str | None, **_: Any) -> Answer:
        return _each(ids, lambda feed: sources.remove(feed, actor=actor_of(actor)))

    def take_in(self, *, file: str, rehearse: bool, actor: str | None, **_: Any) -> Answer:
        try:
            entries = opml.read(_read_list(file))
        except BadOpml as bad:
            raise Failure(f"{file}: {bad}", Exit.REFUSED, "bad_list", path=file) from bad
        results = list(sources.import_entries(entries, actor=actor_of(actor), rehearse=rehearse))
        rows = [
            {"id": each.feed_id, "result": each.result, "line": each.entry.line, "url": each.entry.url}
            | {"title": each.entry.title, "message": each.message or None}
            for each in results
        ]
        numbers = Counter(each.result for each in results)
        refused = [each for each in results if each.is_refused]
        verb = "Preview: would add" if rehearse else "Added"
        counts = [f"{verb} {numbers[ADDED]} {_feeds(numbers[ADDED])}"]
        others = {"already there": numbers[ALREADY_THERE], "listed twice": numbers[TWICE], "refused": len(refused)}
        counts += [f"{number} {what}" for what, number in others.items() if number]
        lines = [f"{', '.join(counts)}."]
        for each in refused:
            lines.append(clean(f"Line {each.entry.line}, {each.entry.title or each.entry.url}: {each.message}"))
        data = {"rehearsed": rehearse, "feeds": rows}
        return Answer(data, "\n".join(lines), Exit.REFUSED if refused else Exit.DONE)

    def export(self, *, file: str, force: bool, **_: Any) -> Answer:
        entries = list(sources.entries())
        data = opml.write(entries)
        if file == STANDARD:
            text = data.decode()
            return Answer({"path": None, "feeds": len(entries), "opml": text}, text.rstrip("\n"))
        try:
            with Path(file).open("wb" if force else "xb") as target:
                target.write(data)
        except OSError as error:
            advice = "Choose another path, or use --force."
            message = f"Could not write {file!r}: {error.strerror or error}. {advice}"
            raise Failure(message, Exit.REFUSED, "not_written", path=file) from error
        text = clean(f"Wrote {len(entries)} {_feeds(len(entries))} to {file}.")
        return Answer({"path": file, "feeds": len(entries)}, text)


def _of_several(parser: ArgumentParser) -> ArgumentParser:
    add_ids(parser, many=True)
    add_actor(parser)
    return parser


def _each(ids: list[int], do: Any) -> Answer:
    return of_each("feed", ids, FeedSource.objects.in_bulk(ids), lambda feed: (do(feed), {}))


def _row(feed: FeedSource) -> dict[str, Any]:
    return {name: getattr(feed, name) for name in COLUMNS}


def _read_list(file: str) -> bytes:
    """Read a file up to one byte more than the limit, so that too long a file is noticed."""
    try:
        if file == STANDARD:
            return sys.stdin.buffer.read(MOST_BYTES + 1)
        with Path(file).open("rb") as source:
            return source.read(MOST_BYTES + 1)
    except FileNotFoundError as error:
        raise not_found(
            "file", file, "name a list that another feed reader exported, or - for standard input"
        ) from error
    except OSError as error:
        message = f"Could not read {file!r}: {error.strerror or error}."
        raise Failure(message, Exit.REFUSED, "not_readable", path=file) from error


def _feeds(number: int) -> str:
    return "feed" if number == 1 else "feeds"
