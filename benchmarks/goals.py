"""What ADE wants to reach. The letters are those of docs/performance.md; a line without one explains others."""

from benchmarks.report import Goal


def of_both(on: str, **goal: float) -> dict[str, float]:
    """The same is measured on SQLite, where it is no goal."""
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


PICKUP = "postgres.pickup"
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
]
