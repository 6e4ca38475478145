"""The performance goals of ADE. The letters refer to docs/performance.md. A line without a letter is no goal, but
explains other lines.
"""

from benchmarks import console
from benchmarks.report import Goal


def of_both(on: str, **goal: float) -> dict[str, float]:
    """Return the limits of the goal on PostgreSQL, and none on SQLite, where the figure is only reported."""
    return goal if on == "postgres" else {}


def goals_of(on: str) -> list[Goal]:
    drain, one, together = f"{on}.drain", f"{on}.one_by_one", f"{on}.together"
    return [
        Goal("a", f"{on}: drain / raw SQL", f"{drain}.plain", f"{on}.raw", **of_both(on, at_least=0.5)),
        Goal(
            "b",
            f"{on}: drain with history / without",
            f"{drain}.history",
            f"{drain}.plain",
            **of_both(on, at_least=0.95),
        ),
        Goal(
            "c", f"{on}: behind a busy document / alone", f"{drain}.busy", f"{drain}.plain", **of_both(on, at_least=0.9)
        ),
        Goal(
            "d",
            f"{on}: behind an unready build / alone",
            f"{drain}.unready",
            f"{drain}.plain",
            **of_both(on, at_least=0.9),
        ),
        Goal("", f"{on}: behind gates left open / alone", f"{drain}.open", f"{drain}.plain"),
        *(
            Goal("", f"{on}: processor us, {what} / {other}", f"{name}.processor_us", f"{against}.processor_us")
            for what, name, other, against in (
                ("drain", f"{drain}.plain", "raw SQL", f"{on}.raw"),
                ("history", f"{drain}.history", "alone", f"{drain}.plain"),
                ("busy", f"{drain}.busy", "alone", f"{drain}.plain"),
                ("unready", f"{drain}.unready", "alone", f"{drain}.plain"),
            )
        ),
        Goal(
            "e",
            f"{on}: submit_many of one / create",
            f"{one}.submit_many",
            f"{one}.create",
            **of_both(on, at_least=0.7),
        ),
        Goal("e", f"{on}: submit / create", f"{one}.submit", f"{one}.create", **of_both(on, at_least=0.7)),
        Goal(
            "e",
            f"{on}: submit_many / bulk_create",
            f"{together}.submit_many",
            f"{together}.bulk_create",
            **of_both(on, at_least=0.3),
        ),
        Goal("", f"{on}: 2 workers of 1 slot / raw SQL", f"{on}.workers.2x1", f"{on}.workers.2x1.raw"),
        Goal("", f"{on}: 1 worker of 2 slots / raw SQL", f"{on}.workers.1x2", f"{on}.workers.1x2.raw"),
    ]


def start_goals_of(on: str) -> list[Goal]:
    """Return the goals for starting engines, compared with a loop that only starts Python. The runs do nothing."""
    engines, floor = f"{on}.engines", f"{on}.engines.floor"
    return [
        Goal("h", f"{on}: warm engines / bare loop", f"{engines}.warm", floor, **of_both(on, at_least=1.3)),
        Goal("i", f"{on}: cold engines / bare loop", f"{engines}.cold", floor, **of_both(on, at_least=0.8)),
        Goal(
            "i", f"{on}: cold engines, limits only / bare loop", f"{engines}.limits", floor, **of_both(on, at_least=0.8)
        ),
        *(
            Goal(
                "",
                f"{on}: processor us, {way} engines / bare loop",
                f"{engines}.{way}.processor_us",
                f"{floor}.processor_us",
            )
            for way in ("warm", "cold", "limits")
        ),
        *(
            Goal("", f"{on}: processor us of a warm run, {what}", f"{engines}.warm.{what}_us", None)
            for what in ("worker", "engines", "server")
            if what != "server" or on == "postgres"
        ),
        Goal(
            "j",
            f"{on}: warm engines / bare loop, heavy imports",
            f"{engines}.heavy.warm",
            f"{engines}.heavy.floor",
            **of_both(on, at_least=15),
        ),
    ]


def keeping_goals_of(on: str) -> list[Goal]:
    """Return the goals for what running engines cost and how quickly they can be stopped."""
    engines, cancel, beside = f"{on}.engines", f"{on}.engines.cancel", f"{on}.engines.beside"
    return [
        Goal("l", f"{on}: p99 ms cancel to engine gone", f"{cancel}.gone.p99", None, **of_both(on, at_most=2000)),
        Goal("l", f"{on}: p99 ms cancel to cancelled", f"{cancel}.cancelled.p99", None, **of_both(on, at_most=2000)),
        Goal(
            "m",
            f"{on}: additional MB while an engine prints",
            f"{engines}.flood.growth",
            None,
            **of_both(on, at_most=64),
        ),
        Goal(
            "m",
            f"{on}: next to one that prints / one silent and as busy",
            f"{beside}.print",
            f"{beside}.silent",
            **of_both(on, at_least=0.8),
        ),
        Goal("", f"{on}: next to one that prints / one asleep", f"{beside}.print", f"{beside}.asleep"),
        Goal("n", f"{on}: MB, worker and engines idle", f"{engines}.memory.idle", None, **of_both(on, at_most=90)),
        Goal(
            "n",
            f"{on}: MB, idle after many runs / before",
            f"{engines}.memory.after",
            f"{engines}.memory.idle",
            **of_both(on, at_most=1.05),
        ),
    ]


def reading_goals_of(on: str) -> list[Goal]:
    read = f"{on}.reading"
    return [
        Goal("q", f"{on}: reading a long PDF / bare pdfium", f"{read}.extract", f"{read}.bare", at_most=1.5),
        Goal("r", f"{on}: MB of the worker that reads", f"{read}.peak", None, at_most=200),
        Goal("s", f"{on}: s upload to searchable, 3 pages", f"{read}.short", None, at_most=1.5),
        Goal("", f"{on}: s upload to searchable, long PDF", f"{read}.long", None),
    ]


def feeds_goals_of(on: str) -> list[Goal]:
    asked = f"{on}.feeds"
    return [
        Goal("t", f"{on}: s for feeds never asked / with nothing new", f"{asked}.first", f"{asked}.again", at_least=10),
        Goal("u", f"{on}: MB of the process that fetches them", f"{asked}.peak", None, at_most=300),
    ]


def api_goals_of(on: str) -> list[Goal]:
    """Return the goals for the API with one client, two web processes and a million runs."""
    asked = f"{on}.api"
    return [
        Goal("v", f"{on}: p95 ms of a list of runs, any page and filter", f"{asked}.list.p95", None, at_most=30),
        Goal("v", f"{on}: p95 ms of the same, of several workspaces", f"{asked}.list_of_several.p95", None, at_most=30),
        Goal("w", f"{on}: p95 ms of a submission", f"{asked}.submit.p95", None, at_most=15),
        *(Goal("", f"{on}: ms of a {what}", f"{asked}.{what}", None) for what in ("list", "list_of_several", "submit")),
        *(
            Goal("", f"{on}: processor ms of a {what}", f"{asked}.{what}.processor_ms", None)
            for what in ("list", "list_of_several", "submit")
        ),
        Goal("", f"{on}: ms of the queue depth", f"{asked}.queue", None),
    ]


def console_goals_of(on: str) -> list[Goal]:
    return [
        Goal("ab", f"{on}: p95 ms of the page {name}", f"{on}.console.{name}.p95", None, at_most=100)
        for name in console.PAGES
    ]


def live_goals_of(on: str, most: float) -> list[Goal]:
    page = f"{on}.live"
    return [
        Goal(
            "ac",
            f"{on}: p95 ms commit to shown on the page, 50 open",
            f"{page}.shown.p95",
            None,
            at_most=most,
        ),
        *(
            Goal("", f"{on}: {what}", f"{page}.{name}", None)
            for what, name in (
                ("ms commit to shown on the page", "shown"),
                ("ms commit to the notification of the page", "told"),
                ("p95 ms of the same", "told.p95"),
            )
        ),
        Goal("ad", f"{on}: % of a core, 50 live pages without changes", f"{page}.idle", None, at_most=1),
    ]


def streams_goals_of(on: str) -> list[Goal]:
    open_ = f"{on}.streams"
    return [
        Goal("x", f"{on}: p95 ms commit to stream, 300 open", f"{open_}.delay.p95", None, **of_both(on, at_most=100)),
        Goal("", f"{on}: ms commit to stream", f"{open_}.delay", None),
        Goal("", f"{on}: processor us for an event of one stream, with pages", f"{open_}.processor_us", None),
        *(
            Goal("y", f"{on}: p95 ms of {path} beside them", f"{open_}.{path}.p95", None, **of_both(on, at_most=50))
            for path in ("/api/v1/runs", "/admin/login/")
        ),
        *(
            Goal("", f"{on}: ms of {path} beside them", f"{open_}.{path}", None)
            for path in ("/api/v1/runs", "/admin/login/")
        ),
        Goal("z", f"{on}: MB of two web processes, proportional", f"{open_}.pss", None, **of_both(on, at_most=300)),
        Goal("z", f"{on}: MB of two web processes, resident", f"{open_}.rss", None, **of_both(on, at_most=300)),
        Goal("aa", f"{on}: % of a core, 50 idle streams", f"{open_}.idle", None, **of_both(on, at_most=1)),
    ]


def search_goals_of(on: str, most: float) -> list[Goal]:
    found = f"{on}.search"
    return [
        Goal("o", f"{on}: p95 ms of a search", f"{found}.both.p95", None, at_most=most),
        *(Goal("", f"{on}: ms of a search by {by}", f"{found}.{by}", None) for by in ("both", "words", "meaning")),
        Goal("", f"{on}: processor ms of a search", f"{found}.both.busy", None),
        Goal("", f"{on}: ms of the first search", f"{found}.first", None),
        Goal("", f"{on}: s to publish a long document", f"{found}.publish", None),
    ]


PICKUP = "postgres.pickup"
STEP, FORK = "postgres.engines.statement.ade.from_commit", "postgres.engines.statement.bare"
STEP_ON_SQLITE = "sqlite.engines.statement.ade.from_commit"
GOALS = [
    *goals_of("postgres"),
    Goal(
        "f", "postgres: ms commit to claim / bare", f"{PICKUP}.ade.from_commit", f"{PICKUP}.bare.from_commit", at_most=2
    ),
    Goal(
        "f",
        "postgres: ms commit to claim / bare with insert",
        f"{PICKUP}.ade.from_commit",
        f"{PICKUP}.bare.whole",
        at_most=2,
    ),
    Goal("", "postgres: ms submission to claim / bare", f"{PICKUP}.ade.whole", f"{PICKUP}.bare.whole"),
    Goal(
        "", "postgres: p99 ms commit to claim / bare", f"{PICKUP}.ade.from_commit.p99", f"{PICKUP}.bare.from_commit.p99"
    ),
    Goal("f", "sqlite: ms commit to claim", "sqlite.pickup.ade.from_commit", None, at_most=60),
    Goal("", "sqlite: p99 ms commit to claim", "sqlite.pickup.ade.from_commit.p99", None),
    Goal("g", "sqlite: drain / drain on postgres", "sqlite.drain.plain", "postgres.drain.plain", at_least=1),
    Goal("g", "sqlite: writes that met a lock", "sqlite.locked", None, at_most=0),
    *goals_of("sqlite"),
    *start_goals_of("postgres"),
    Goal("k", "postgres: ms commit to step / bare insert to fork", STEP, f"{FORK}.whole", at_most=3),
    Goal("k", "postgres: p99 ms commit to step / bare insert to fork", f"{STEP}.p99", f"{FORK}.whole.p99", at_most=5),
    Goal("", "postgres: ms commit to step / bare commit to fork", STEP, f"{FORK}.from_commit"),
    Goal("", "postgres: p99 ms commit to step / bare commit to fork", f"{STEP}.p99", f"{FORK}.from_commit.p99"),
    Goal("k", "sqlite: ms commit to step", STEP_ON_SQLITE, None, at_most=80),
    Goal("", "sqlite: p99 ms commit to step", f"{STEP_ON_SQLITE}.p99", None),
    *search_goals_of("postgres", 50),
    Goal("p", "postgres: share of the nearest ten found", "postgres.search.recall", None, at_least=0.95),
    *search_goals_of("sqlite", 250),
    *reading_goals_of("postgres"),
    *reading_goals_of("sqlite"),
    *feeds_goals_of("postgres"),
    *feeds_goals_of("sqlite"),
    *api_goals_of("postgres"),
    *streams_goals_of("postgres"),
    *streams_goals_of("sqlite"),
    *console_goals_of("postgres"),
    *live_goals_of("postgres", 300),
    *live_goals_of("sqlite", 1200),
    *keeping_goals_of("postgres"),
]
# These goals are measured on SQLite only if PostgreSQL is not measured.
ON_SQLITE_ALONE = [*start_goals_of("sqlite"), *keeping_goals_of("sqlite")]
# These goals are measured only if there are documents with their truth.
ON_DATA = [
    Goal("ah", "tables: F1 of adjacency relations", "tables.f1", None, at_least=0.8),
    Goal("", "tables: precision", "tables.precision", None),
    Goal("", "tables: recall", "tables.recall", None),
    Goal("", "tables: F1 of all documents together", "tables.f1.pooled", None),
    Goal("", "tables: ms of a page, median", "tables.page", None),
    Goal("", "tables: ms of a page, p99", "tables.page.p99", None),
    Goal("", "tables: MB of the process", "tables.peak", None),
]
