import pytest

from feeds import lifecycle
from feeds.models import FeedSource
from tests.api.programs import Program, editor_of, problem_of
from tests.factories import ArticleFactory, FeedFactory, events_of, write
from work import clock

URL = "https://tides.example.org/rss"
HOSTILE = "<script>alert(1)</script>\x1b\u202e"
LIST = f"""<?xml version="1.0"?><opml version="2.0"><body>
<outline text="Tides" xmlUrl="{URL}"/>
<outline text="Tides again" xmlUrl="{URL}"/>
<outline text="Hill" xmlUrl="https://hill.example.org/rss"/>
<outline text="Inside" xmlUrl="http://127.0.0.1/rss"/>
</body></opml>""".encode()
BOMB = b'<!DOCTYPE opml [<!ENTITY a "a">]><opml><body>&a;</body></opml>'
MANY = b"<opml>" + b'<outline xmlUrl="https://hill.example.org/rss"/>' * 1001 + b"</opml>"

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


@pytest.fixture
def program(workspace):
    return Program(editor_of(workspace), workspace, "installation")


@pytest.fixture
def feed(db):
    return FeedFactory(title="Tides", url=URL)


def send(program, data, content_type="text/xml", rehearse="", **options):
    return program.client.generic("POST", f"/api/v1/feeds/import{rehearse}", data, content_type, **options)


def results(answer):
    return [row["result"] for row in answer.json()["feeds"]]


def test_feeds_come_in_pages_and_by_how_they_stand(program):
    feeds = [FeedFactory() for _ in range(3)]
    write(feeds[1], failures=2, failing_since=clock.now(), last_error="expected an answer")
    lifecycle.pause(feeds[2].pk, actor="olga")

    first = program.get("/feeds", limit=2).json()
    second = program.get("/feeds", limit=2, cursor=first["next"]).json()

    assert [feed["id"] for feed in first["items"] + second["items"]] == [feed.pk for feed in reversed(feeds)]
    found = {
        state: [row["id"] for row in program.get("/feeds", state=state).json()["items"]]
        for state in ("failing", "paused", "due")
    }
    assert found == {"failing": [feeds[1].pk], "paused": [feeds[2].pk], "due": [feeds[1].pk, feeds[0].pk]}
    assert problem_of(program.get("/feeds", state="all")) == (400, "invalid_request")


def test_a_feed_tells_how_it_stands(program, feed):
    write(feed, failures=3, failing_since=clock.now(), last_error=f"expected a feed, found {HOSTILE}")
    ArticleFactory(feed=feed)

    told = program.get(f"/feeds/{feed.pk}").json()

    assert (told["state"], told["failures"], told["articles"]) == ("failing", 3, 1)
    assert told["standing"] == "failed 3 times in a row, never answered"
    assert told["last_error"] == f"expected a feed, found {HOSTILE}"


def test_what_comes_from_outside_is_nothing_but_text(program, feed):
    ArticleFactory(feed=feed, title=HOSTILE, summary="=1+1")

    answer = program.get(f"/feeds/{feed.pk}/articles")

    assert answer["Content-Type"].startswith("application/json")
    (article,) = answer.json()["items"]
    assert (article["title"], article["summary"]) == (HOSTILE, "=1+1")
    assert answer["X-Content-Type-Options"] == "nosniff"


def test_a_feed_is_added_in_its_one_spelling(program):
    answer = program.post("/feeds", {"url": "HTTPS://tides.example.org:443/rss?utm_source=x", "title": " Tides\n"})

    assert answer.status_code == 201
    feed = FeedSource.objects.get(pk=answer.json()["id"])
    assert (feed.url, feed.title) == (URL, "Tides")
    assert events_of(feed).get().actor == "edda (token program)"


def test_a_feed_that_is_there_is_named(program, feed):
    answer = program.post("/feeds", {"url": f"{URL}#top"})

    assert problem_of(answer) == (409, "already_there")
    assert answer.json()["details"] == {"feed_id": feed.pk}


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("tides", "bad_url"),
        ("file:///etc/passwd", "bad_url"),
        ("http://127.0.0.1/rss", "refused_address"),
        ("http://[::1]/rss", "refused_address"),
        ("https://tides.example.org:22/rss", "refused_address"),
    ],
)
def test_what_is_not_fetched_is_not_added(program, url, reason):
    answer = program.post("/feeds", {"url": url})

    assert problem_of(answer) == (400, "bad_url")
    assert answer.json()["details"] == {"reason": reason}
    assert FeedSource.objects.count() == 0


def test_who_adds_a_feed_again_with_the_same_key_gets_the_same_one(program):
    first, again = (program.post("/feeds", {"url": URL}, headers={"Idempotency-Key": "one"}) for _ in range(2))

    assert (first.status_code, first.content) == (again.status_code, again.content)


def test_a_feed_has_its_turn_when_somebody_asks_unless_it_is_paused(program, feed):
    asked = program.post(f"/feeds/{feed.pk}/check")
    paused = program.post(f"/feeds/{feed.pk}/pause", {"reason": "too noisy"})

    assert (asked.status_code, paused.json()["state"]) == (200, "paused")
    for verb in ("check", "pause"):
        assert problem_of(program.post(f"/feeds/{feed.pk}/{verb}")) == (409, "conflict")
    assert program.post(f"/feeds/{feed.pk}/resume").json()["state"] == "new"
    assert problem_of(program.post(f"/feeds/{feed.pk}/resume")) == (409, "conflict")
    events = [event["kind"] for event in program.get(f"/feeds/{feed.pk}/events").json()["items"]]
    assert events == ["FEED_ADDED", "FEED_CHECK_ASKED", "FEED_PAUSED", "FEED_RESUMED"]


def test_a_feed_is_called_otherwise(program, feed):
    twice = [program.ask("patch", f"/feeds/{feed.pk}", {"title": "Moons"}) for _ in range(2)]

    assert [(answer.status_code, answer.json()["title"]) for answer in twice] == [(200, "Moons")] * 2


def test_only_a_feed_without_articles_is_removed(program, feed):
    kept = ArticleFactory().feed

    assert program.ask("delete", f"/feeds/{feed.pk}").json()["url"] == URL
    assert problem_of(program.ask("delete", f"/feeds/{kept.pk}")) == (409, "conflict")
    assert list(FeedSource.objects.all()) == [kept]


def test_a_list_is_rehearsed_and_taken_in(program):
    rehearsed = send(program, LIST, rehearse="?rehearse=true")
    assert FeedSource.objects.count() == 0

    done = send(program, LIST)

    assert results(rehearsed) == results(done) == ["added", "twice", "added", "refused_address"]
    assert done.json()["counts"] == {"added": 2, "twice": 1, "refused_address": 1}
    assert results(send(program, LIST)) == ["already_there", "twice", "already_there", "refused_address"]


def test_a_list_that_is_sent_again_with_the_same_key_answers_the_same(program):
    first, again = (send(program, LIST, headers={"Idempotency-Key": "one"}) for _ in range(2))
    other = send(program, LIST + b" ", headers={"Idempotency-Key": "one"})

    assert first.content == again.content
    assert problem_of(other) == (422, "idempotency_key_reused")


def test_a_list_comes_in_a_form_too(program, tmp_path):
    path = tmp_path / "feeds.opml"
    path.write_bytes(LIST)
    with path.open("rb") as file, path.open("rb") as other:
        done = program.client.post("/api/v1/feeds/import", {"file": file})
        two = program.client.post("/api/v1/feeds/import", {"file": other, "title": "x"})

    assert results(done) == ["added", "twice", "added", "refused_address"]
    assert problem_of(two) == (400, "invalid_request")


@pytest.mark.parametrize(
    ("data", "content_type", "expected"),
    [
        (b" ", "text/xml", (400, "bad_list")),
        (b"<rss/>", "text/xml", (400, "bad_list")),
        (BOMB, "application/xml", (400, "bad_list")),
        (b"<opml>", "text/xml", (400, "bad_list")),
        (LIST, "text/plain", (415, "unsupported_media_type")),
        (LIST, "application/json", (415, "unsupported_media_type")),
        (LIST, "", (415, "unsupported_media_type")),
        (b"--x", "multipart/form-data", (400, "invalid_multipart")),
        (b" " * (10 * 2**20 + 1), "text/xml", (413, "too_large")),
        (MANY, "text/xml", (413, "too_large")),
    ],
    ids=["empty", "rss", "bomb", "cut", "text", "json", "unsaid", "form", "large", "many"],
)
def test_what_is_no_list_is_refused(program, data, content_type, expected):
    assert problem_of(send(program, data, content_type)) == expected
    assert FeedSource.objects.count() == 0


def test_what_is_exported_can_be_imported(program, feed):
    answer = program.get("/feeds/export")
    feed.delete()

    assert answer["Content-Type"] == "application/xml; charset=utf-8"
    assert answer["Content-Disposition"] == 'attachment; filename="feeds.opml"'
    assert results(send(program, answer.content, "application/xml")) == ["added"]
    assert FeedSource.objects.get().title == "Tides"
