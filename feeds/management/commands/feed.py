import sys
from argparse import ArgumentParser
from collections import Counter
from pathlib import Path
from typing import Any

from feeds import check_commands, feed_status, opml, sources
from feeds.models import FeedSource, RawArticle
from feeds.opml import MOST_BYTES, BadOpml
from feeds.sources import ADDED, ALREADY_THERE, TWICE, AlreadyThere, Imported, NotAdded
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
from work.operations.outcomes import Outcome

COLUMNS = (
    *("id", "url", "title", "site_url", "state", "next_check_at", "checked_at", "succeeded_at", "failures"),
    *("failing_since", "last_error", "paused_at", "paused_by", "created_at"),
)
ARTICLE_COLUMNS = ("id", "title", "url", "published_at", "seen_at")
CHOICES = ("failing", "paused", "due")
EVENTS = 100
# Articles of one feed are counted up to the first number and named up to the second.
MOST_COUNTED = 10_000
MOST_NAMED = 5
# Stands for standard input or standard output.
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
                feed, checked = check_commands.add_what_answers(url, title, actor_of(actor))
                found = check_commands.found_of(checked)
            else:
                feed, checked = sources.add(url, title=title, actor=actor_of(actor)), None
                found = "It is checked when the job runs next."
        except NotAdded as refused:
            there = {"id": refused.feed.pk} if isinstance(refused, AlreadyThere) else {}
            raise Failure(str(refused), Exit.REFUSED, refused.code, **there) from refused
        exit = check_commands.exit_of([checked] if checked else [])
        return Answer(_row(feed) | {"check": checked}, clean(f"Added feed {feed.pk}, {feed.url}. {found}"), exit)

    def list_feeds(self, *, choice: str | None, limit: int, before: int | None, **_: Any) -> Answer:
        found = FeedSource.objects.all()
        found = getattr(found, choice)() if choice else found
        found = found.filter(pk__lt=before) if before else found
        feeds = list(found.order_by("-id")[:limit])
        shown = [
            {"id": feed.pk, "state": feed_status.how(feed), "next_check": feed_status.when(feed)}
            | {"title": feed.title, "url": feed.url}
            for feed in feeds
        ]
        return Answer(
            {"feeds": [_row(feed) for feed in feeds]}, table(shown, "id", "state", "next_check", "title", "url")
        )

    def show(self, *, id: int, **_: Any) -> Answer:
        feed = _feed(id)
        articles = RawArticle.objects.filter(feed=feed)
        told = {"articles": articles.order_by()[: MOST_COUNTED + 1].count()}
        newest = list(articles.order_by("-id").values(*ARTICLE_COLUMNS)[:MOST_NAMED])
        events = events_about("feed", id, EVENTS)
        shown = _row(feed) | {"state": feed_status.how(feed), "articles": _counted(told["articles"])}
        parts = [fields(shown), table(newest, "id", "seen_at", "published_at", "title"), history(events)]
        return Answer(_row(feed) | told | {"newest": newest, "events": events}, "\n\n".join(parts))

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
            entries = opml.read(_bytes_of(file))
        except BadOpml as bad:
            raise Failure(f"{file}: {bad}", Exit.REFUSED, "bad_list", path=file) from bad
        done = list(sources.take_in(entries, actor=actor_of(actor), rehearse=rehearse))
        is_whole = not any(each.is_refused for each in done)
        data = {"rehearsed": rehearse, "feeds": [_taken(each) for each in done]}
        return Answer(data, _summary(done, rehearse=rehearse), Exit.DONE if is_whole else Exit.REFUSED)

    def export(self, *, file: str, force: bool, **_: Any) -> Answer:
        entries = list(sources.entries())
        written = opml.write(entries)
        if file == STANDARD:
            text = written.decode()
            return Answer({"path": None, "feeds": len(entries), "opml": text}, text.rstrip("\n"))
        try:
            with Path(file).open("wb" if force else "xb") as target:
                target.write(written)
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
    def done(feed: FeedSource) -> tuple[Outcome, dict[str, Any]]:
        return do(feed), {}

    return of_each("feed", ids, FeedSource.objects.in_bulk(ids), done)


def _feed(id: int) -> FeedSource:
    feed = FeedSource.objects.filter(pk=id).first()
    if feed is None:
        raise not_found("feed", id, "`manage.py feed list` shows them")
    return feed


def _row(feed: FeedSource) -> dict[str, Any]:
    return {name: getattr(feed, name) for name in COLUMNS}


def _bytes_of(file: str) -> bytes:
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


def _taken(each: Imported) -> dict[str, Any]:
    said = {"line": each.entry.line, "url": each.entry.url, "title": each.entry.title}
    return {"id": each.feed_id, "result": each.result, **said, "message": each.message or None}


def _summary(done: list[Imported], *, rehearse: bool) -> str:
    numbers = Counter(each.result for each in done)
    refused = [each for each in done if each.is_refused]
    would = "Preview: would add" if rehearse else "Added"
    others = {"already there": numbers[ALREADY_THERE], "listed twice": numbers[TWICE], "refused": len(refused)}
    said = [f"{would} {numbers[ADDED]} {_feeds(numbers[ADDED])}"]
    said += [f"{number} {what}" for what, number in others.items() if number]
    lines = [f"{', '.join(said)}."]
    for each in refused:
        lines.append(clean(f"Line {each.entry.line}, {each.entry.title or each.entry.url}: {each.message}"))
    return "\n".join(lines)


def _counted(number: int) -> str:
    return f"over {MOST_COUNTED}" if number > MOST_COUNTED else str(number)


def _feeds(number: int) -> str:
    return "feed" if number == 1 else "feeds"
