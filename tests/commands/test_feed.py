import io
import re
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from feeds import lifecycle, opml
from feeds.models import FeedSource
from tests.factories import ArticleFactory, FeedFactory, events_of, write
from work import clock

pytestmark = [pytest.mark.edge, pytest.mark.django_db]

LISTS = Path(__file__).parents[1] / "feeds" / "lists"
URL = "https://tides.example.org/rss"
HOSTILE = "a\x1b[2Jb\u202e\x9bc"


def later():
    return clock.now() + timedelta(hours=2, seconds=30)


@pytest.fixture
def ok():
    return fetched(FeedFactory(title="Tides"))


@pytest.fixture
def failing():
    feed = fetched(FeedFactory(title="Moons"))
    write(
        feed,
        failures=3,
        failing_since=clock.now(),
        last_error="expected a feed, found a page",
        succeeded_at=clock.now() - timedelta(days=2),
    )
    return feed


@pytest.fixture
def paused():
    feed = fetched(FeedFactory(title="Stars"))
    assert lifecycle.pause(feed.pk, actor="ravi")
    return feed


def fetched(feed):
    write(feed, next_check_at=later(), checked_at=clock.now(), succeeded_at=clock.now())
    return feed


# add


def test_add_adds_one(manage):
    ended = manage("feed", "add", URL, "--title", "Tides", "--as", "olga", "--json")

    feed = FeedSource.objects.get()
    assert ended.code == 0
    assert ended.json["id"] == feed.pk
    assert (ended.json["url"], ended.json["title"], ended.json["state"]) == (URL, "Tides", "new")
    assert events_of(feed).get().actor == "olga (command)"


def test_add_says_what_it_did(manage):
    ended = manage("feed", "add", "feed://Tides.example.org/rss")

    assert ended.out.startswith(f"Added feed {FeedSource.objects.get().pk}, http://tides.example.org/rss.")


def test_add_names_the_feed_that_is_there(manage):
    feed = FeedFactory(url=URL, title=HOSTILE)

    ended, in_json = manage("feed", "add", URL), manage("feed", "add", URL, "--json")

    assert (ended.code, in_json.code, in_json.error["code"]) == (1, 1, "already_there")
    assert in_json.error["details"] == {"id": feed.pk}
    assert f"This URL already belongs to feed {feed.pk} (" in ended.err
    assert not any(c in ended.err for c in "\x1b\u202e\x9b")


@pytest.mark.parametrize(
    ("url", "code"),
    [("tides.example.org/rss", "bad_url"), ("file:///etc/passwd", "bad_url"), ("http://127.0.0.1/", "refused_address")],
)
def test_add_says_why_not(manage, url, code):
    ended = manage("feed", "add", url, "--json")

    assert (ended.code, ended.out, ended.error["code"]) == (1, "", code)
    assert re.search(r"^The (URL|host) .+\.$", ended.error["message"])
    assert not FeedSource.objects.exists()


# list and show


def test_list_says_how_each_stands(manage, ok, failing, paused):
    write(new := FeedFactory(title="Suns"), next_check_at=clock.now() - timedelta(seconds=1))

    lines = manage("feed", "list").out.splitlines()

    assert [" ".join(line.split()) for line in lines] == [
        "ID STATE NEXT CHECK TITLE URL",
        f"{new.pk} never checked due Suns {new.url}",
        f"{paused.pk} paused by ravi less than a minute ago - Stars {paused.url}",
        f"{failing.pk} failed 3 times in a row, last answered 2 days ago in 2 hours Moons {failing.url}",
        f"{ok.pk} ok in 2 hours Tides {ok.url}",
    ]


def test_list_chooses(manage, ok, failing, paused):
    due = FeedFactory()

    def ids(*arguments):
        return [row["id"] for row in manage("feed", "list", *arguments, "--json").json["feeds"]]

    assert ids() == [due.pk, paused.pk, failing.pk, ok.pk]
    assert ids("--failing") == [failing.pk]
    assert ids("--paused") == [paused.pk]
    assert ids("--due") == [due.pk]
    assert ids("--limit", 2) == [due.pk, paused.pk]
    assert ids("--before", failing.pk) == [ok.pk]
    assert manage("feed", "list", "--due", "--paused").code == 2


def test_a_feed_that_is_paused_is_neither_failing_nor_due(manage, failing):
    assert lifecycle.pause(failing.pk, actor="ravi")
    write(failing, next_check_at=clock.now())

    for choice in ("--failing", "--due"):
        assert manage("feed", "list", choice, "--json").json["feeds"] == []


def test_show_tells_of_errors_articles_and_events(manage, failing):
    ArticleFactory(feed=failing, title="Old")
    ArticleFactory(feed=failing, title="New")
    ArticleFactory(title="Of another")

    shown, text = manage("feed", "show", failing.pk, "--json").json, manage("feed", "show", failing.pk).out

    assert (shown["state"], shown["articles"]) == ("failing", 2)
    assert [each["title"] for each in shown["newest"]] == ["New", "Old"]
    assert [event["kind"] for event in shown["events"]] == ["FEED_ADDED"]
    for said in ("failed 3 times in a row", "expected a feed, found a page", "New", "FEED_ADDED"):
        assert said in text


def test_one_that_does_not_exist(manage):
    for verb in ("show", "pause", "resume", "remove"):
        assert manage("feed", verb, 999_999).code == 6
    assert manage("feed", "rename", 999_999, "a").code == 6


# pause, resume, rename, remove


def test_pause_does_each_and_tells_of_each(manage, ok, paused):
    ended = manage("feed", "pause", ok.pk, paused.pk, 999_999, "--reason", "too loud", "--as", "olga", "--json")

    assert ended.code == 6
    assert [row["result"] for row in ended.json["feeds"]] == ["paused", "was paused already", "not found"]
    event = events_of(ok).last()
    assert (event.kind, event.actor, event.message) == ("FEED_PAUSED", "olga (command)", "too loud")
    assert manage("feed", "pause", paused.pk).code == 1


def test_resume(manage, ok, paused):
    ended = manage("feed", "resume", paused.pk, ok.pk, "--json")

    assert ended.code == 1
    assert [row["result"] for row in ended.json["feeds"]] == ["goes on", "is not paused"]


def test_rename(manage, ok):
    ended, again = (manage("feed", "rename", ok.pk, "Ebb and flow", "--json") for _ in range(2))

    assert [each.json["feeds"][0]["result"] for each in (ended, again)] == ["renamed", "is called so already"]
    assert (ended.code, again.code) == (0, 1)
    assert FeedSource.objects.get().title == "Ebb and flow"


def test_remove_keeps_what_has_articles(manage, ok, paused):
    ArticleFactory(feed=ok)

    ended = manage("feed", "remove", ok.pk, paused.pk, "--json")

    assert ended.code == 1
    assert [row["result"] for row in ended.json["feeds"]] == ["has articles", "removed"]
    assert list(FeedSource.objects.all()) == [ok]


# import and export


def test_import_tells_of_each(manage):
    ended = manage("feed", "import", LISTS / "damaged.opml", "--as", "olga", "--json")

    assert ended.code == 1
    rows = ended.json["feeds"]
    assert [row["result"] for row in rows] == [
        *("added", "bad_url", "bad_url", "bad_url", "refused_address", "refused_address", "twice", "added"),
    ]
    first, last = FeedSource.objects.order_by("id")
    assert (rows[0]["id"], rows[-1]["id"], rows[1]["id"]) == (first.pk, last.pk, None)
    assert (rows[1]["line"], rows[1]["title"], rows[0]["message"]) == (5, "No address", None)
    assert events_of(first).get().actor == "olga (command)"


def test_import_says_in_words_what_became_of_them(manage):
    foreseen = manage("feed", "import", LISTS / "damaged.opml", "--rehearse").out
    assert not FeedSource.objects.exists()
    done = manage("feed", "import", LISTS / "damaged.opml").out
    again = manage("feed", "import", LISTS / "folders.opml").out

    assert foreseen.startswith("Preview: would add 2 feeds, 1 listed twice, 5 refused.\n")
    assert done.startswith("Added 2 feeds, 1 listed twice, 5 refused.\nLine 5, No address: The URL '' must ")
    assert "\nLine 8, An inner machine: The host 127.0.0.1, port 80, is not allowed for feeds. Use a public" in done
    assert again == "Added 2 feeds, 1 listed twice.\n"
    assert manage("feed", "import", LISTS / "folders.opml").out.startswith(
        "Added 0 feeds, 2 already there, 1 listed twice"
    )
    assert manage("feed", "import", LISTS / "folders.opml").code == 0


def test_import_takes_what_another_program_hands_over(manage, monkeypatch):
    sent = io.BytesIO((LISTS / "utf16.opml").read_bytes())
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=sent))

    assert manage("feed", "import", "-").out == "Added 1 feed.\n"
    assert FeedSource.objects.get().title == "Bücher für Kölner"


def test_import_says_what_is_wrong_with_a_file(manage, tmp_path):
    (bad := tmp_path / "bad.opml").write_bytes(b"<rss/>")
    (long := tmp_path / "long.opml").write_bytes(b"<opml>" + b" " * opml.MOST_BYTES)

    ended = {path: manage("feed", "import", path, "--json") for path in (bad, long, tmp_path, tmp_path / "none")}

    assert [(each.code, each.error["code"]) for each in ended.values()] == [
        (1, "bad_list"),
        (1, "bad_list"),
        (1, "not_readable"),
        (6, "not_found"),
    ]
    assert f"{bad}: This is not a list of feeds" in ended[bad].error["message"]


def test_what_a_list_calls_feeds_does_nothing_to_the_terminal(manage, tmp_path):
    (path := tmp_path / "list.opml").write_text(
        f'<opml><outline text="{"a&#x9b;b&#x202e;"}" xmlUrl="nonsense&#x9b;"/>'
        '<outline text="c&#x9b;d&#x202e;" xmlUrl="https://tides.example.org/&#x9b;"/></opml>'
    )

    said = manage("feed", "import", path).out + manage("feed", "list").out + manage("feed", "export").out
    FeedSource.objects.update(title=HOSTILE, last_error=HOSTILE, failures=1, failing_since=clock.now())
    id = FeedSource.objects.get().pk
    said += manage("feed", "list").out + manage("feed", "show", id).out
    exported = manage("feed", "export").out

    assert not any(c in said for c in "\x1b\u202e\x9b")
    assert not any(c in exported for c in "\x1b\x9b")


def test_export_and_import_give_the_same_feeds(manage, tmp_path):
    assert manage("feed", "import", LISTS / "folders.opml").code == 0
    before = list(FeedSource.objects.order_by("id").values_list("url", "title", "site_url"))
    path = tmp_path / "mine.opml"

    ended = manage("feed", "export", path)
    FeedSource.objects.all().delete()
    assert manage("feed", "import", path).code == 0

    assert ended.out == f"Wrote 2 feeds to {path}.\n"
    assert list(FeedSource.objects.order_by("id").values_list("url", "title", "site_url")) == before


def test_export_writes_over_nothing_unless_told(manage, ok, tmp_path):
    (path := tmp_path / "mine.opml").write_text("precious")

    ended = manage("feed", "export", path, "--json")

    assert (ended.code, ended.error["code"], path.read_text()) == (1, "not_written", "precious")
    assert "File exists. Choose another path, or use --force." in ended.error["message"]
    assert manage("feed", "export", path, "--force", "--json").json == {"path": str(path), "feeds": 1}
    assert ok.url in path.read_text()
    assert manage("feed", "export", tmp_path / "none" / "x").code == 1


def test_export_to_standard_output_is_the_list_and_nothing_else(manage, ok):
    text, in_json = manage("feed", "export").out, manage("feed", "export", "--json").json

    assert [entry.url for entry in opml.read(text.encode())] == [ok.url]
    assert in_json == {"path": None, "feeds": 1, "opml": text}
