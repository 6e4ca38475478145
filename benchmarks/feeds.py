"""The feeds part: fetches many feeds for the first time, and again when nothing has changed."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from benchmarks import report
from benchmarks.actors import Actor, environment
from benchmarks.databases import Postgres, Sqlite
from benchmarks.engines import AS_DEPLOYED

PART = "feeds"
# A round's figure for unchanged feeds is the median of this many repetitions.
AGAIN = 3


@dataclass(frozen=True)
class Sizes:
    rounds: int
    feeds: int
    items: int


FULL = Sizes(rounds=5, feeds=200, items=100)
QUICK = Sizes(rounds=3, feeds=100, items=100)
TINY = Sizes(rounds=1, feeds=10, items=20)


class Bench:
    def __init__(self, sizes: Sizes, samples: report.Samples, say: Callable[[str], None]) -> None:
        self.sizes, self.samples, self.say = sizes, samples, say

    def run(self, servers: list[Postgres | Sqlite], directory: Path) -> None:
        with _news(self.sizes) as urls:
            for server in servers:
                server.create(PART)
                folder = directory / f"{server.name}-{PART}"
                folder.mkdir()
                variables = AS_DEPLOYED | {"ADE_FEED_NETWORKS": "127.0.0.0/8", "ADE_LOG_LEVEL": "WARNING"}
                actor = Actor(environment(server.url(PART), folder / "var", **variables), folder / "actor.log")
                try:
                    actor.call("articles.prepare", urls=urls)
                    for number in range(self.sizes.rounds):
                        self._round(f"{server.name}.feeds", actor)
                        self.say(f"{server.name}: feeds round {number + 1} of {self.sizes.rounds}")
                finally:
                    actor.stop()

    def _round(self, on: str, actor: Actor) -> None:
        actor.call("articles.forget")
        first = actor.call("articles.ask")
        again = [actor.call("articles.ask") for _ in range(AGAIN)]
        assert [each["new"] for each in (first, *again)] == [self.sizes.feeds * self.sizes.items] + [0] * AGAIN
        self.samples.add(f"{on}.first", first["seconds"])
        self.samples.add(f"{on}.again", sorted(each["seconds"] for each in again)[AGAIN // 2])
        self.samples.add(f"{on}.peak", again[-1]["megabytes"])


class _News(BaseHTTPRequestHandler):
    """Serves a feed at every path. The feeds never change."""

    items = 0

    def do_GET(self) -> None:
        tag = f'"{self.path}"'
        unchanged = self.headers["If-None-Match"] == tag
        body = b"" if unchanged else _feed(self.path.strip("/"), self.items)
        self.send_response(304 if unchanged else 200)
        self.send_header("ETag", tag)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    # Long enough for all clients, because a client that finds the backlog full tries again only after a second.
    request_queue_size = 128


@contextmanager
def _news(sizes: Sizes) -> Iterator[list[str]]:
    _News.items = sizes.items
    with _Server(("127.0.0.1", 0), _News) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield [f"http://127.0.0.1:{server.server_port}/{number}" for number in range(sizes.feeds)]
        finally:
            server.shutdown()


def _feed(name: str, items: int) -> bytes:
    story = (
        "<item><title>Story {0} of {1}</title><link>https://news{1}.example/{0}</link>"
        "<pubDate>Sun, 01 Mar 2026 12:00:00 GMT</pubDate>"
        "<description>&lt;p&gt;What has happened, in &lt;b&gt;some&lt;/b&gt; words.&lt;/p&gt;</description></item>"
    )
    stories = "".join(story.format(number, name) for number in range(items))
    return f'<rss version="2.0"><channel><title>News {name}</title>{stories}</channel></rss>'.encode()
