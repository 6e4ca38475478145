"""Rules that must hold for all rows, written as plain SQL queries that `manage.py doctor` runs.

The rules in this module hold for every kind of work. Each app declares further rules next to its models, and
`settings.WORK_INVARIANTS` lists them. The SQL has to work on all three databases: it must not use WITH or LIMIT, and it
must write times through `Dialect`.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.db import connection
from django.utils.module_loading import import_string

from work import clock
from work.models import Work
from work.state_machine import StateMachine
from work.work_types import all_work_types, other_subjects

DEFECT = "This is a defect of ADE, or the tables were edited by hand. Keep the rows and their events, and report it."
# The time that recovery may take once a lease has expired: until the next tick, and one more tick if that one fails.
RESCUE_SECONDS = 60
# Only this many of the newest events are checked for the order of their times, because checking it means sorting them.
NEWEST_EVENTS = 500_000
_LATER = {
    "postgresql": "({moment} + interval '{seconds} seconds')",
    # The text format in which Django stores times, so that the values can be compared.
    "sqlite": "strftime('%Y-%m-%d %H:%M:%f', {moment}, '+{seconds} seconds')",
    "microsoft": "DATEADD(second, {seconds}, {moment})",
}


@dataclass(frozen=True)
class Dialect:
    vendor: str
    now: datetime

    def later(self, moment: str, seconds: int) -> str:
        return _LATER[self.vendor].format(moment=moment, seconds=seconds)

    def ago(self, seconds: int) -> str:
        return self.moment(self.now - timedelta(seconds=seconds))

    def never(self) -> str:
        return self.moment(datetime(9999, 1, 1, tzinfo=UTC))

    def moment(self, at: datetime) -> str:
        return f"'{connection.ops.adapt_datetimefield_value(at)}'"

    def a_worker_was_there(self, seconds: int) -> str:
        """Return the SQL condition that a live worker has run for this many seconds, long enough to do its duties."""
        return (
            f"EXISTS (SELECT 1 FROM workers w WHERE w.stopped_at IS NULL AND w.started_at < {self.ago(seconds)}"
            f" AND w.heartbeat_at > {self.ago(settings.ADE_LEASE_SECONDS)})"
        )


@dataclass(frozen=True)
class Invariant:
    name: str
    promise: str
    # Selects the kind and id of each row that breaks the rule.
    sql: Callable[[Dialect], str]
    advice: str

    def breaches(self, most: int) -> list[tuple[str, int]]:
        with connection.cursor() as cursor:
            # The statement has no parameters, so % has no special meaning in it.
            cursor.execute(self.sql(Dialect(connection.vendor, clock.now())))
            return [(kind, id) for kind, id in cursor.fetchmany(most)]


def overlaps(model: type[Work], kind: str, group: str) -> str:
    """Return SQL that finds rows of the same group, such as runs of a document, that were active at the same time.

    It compares each row only with the row that started just before it, in the order in which the events were written:
    if any two rows of a group overlap, two such neighbours do.
    """
    return f"""
        SELECT '{kind}', o.id FROM (
            SELECT r.id, e.started, LAG(COALESCE(e.ended, {2**63 - 1}))
                OVER (PARTITION BY r.{group} ORDER BY e.started) AS before_ended
            FROM {model._meta.db_table} r JOIN (
                SELECT subject_id, MIN(CASE WHEN to_status = '{model.ACTIVE}' THEN id END) AS started,
                    MIN(CASE WHEN to_status IN ({words(model.TERMINAL)}) THEN id END) AS ended
                FROM events WHERE subject_kind = '{kind}' AND to_status <> '' GROUP BY subject_id
            ) e ON e.subject_id = r.id
            WHERE e.started IS NOT NULL
        ) o WHERE o.started < o.before_ended"""


def all_invariants() -> Iterator[Invariant]:
    for path in settings.WORK_INVARIANTS:
        yield from import_string(path)


def words(values: Iterable[str]) -> str:
    """Format string constants as a list for IN. The values are not escaped."""
    return ", ".join(f"'{value}'" for value in sorted(values))


def _for_every_kind(
    sql: Callable[[StateMachine, Dialect], str | None], *, and_other_subjects: bool = False
) -> Callable[[Dialect], str]:
    def union(dialect: Dialect) -> str:
        machines = [kind.states for kind in all_work_types()]
        if and_other_subjects:
            machines.extend(other_subjects())
        parts = (sql(states, dialect) for states in machines)
        return "\nUNION ALL\n".join(part for part in parts if part)

    return union


def _last_event(states: StateMachine, dialect: Dialect) -> str:
    return f"""
        SELECT '{states.kind}', r.id FROM {states.model._meta.db_table} r
        LEFT JOIN (
            SELECT subject_id, to_status, ROW_NUMBER() OVER (PARTITION BY subject_id ORDER BY sequence DESC) AS nth
            FROM events WHERE subject_kind = '{states.kind}' AND to_status <> ''
        ) e ON e.subject_id = r.id AND e.nth = 1
        WHERE e.to_status IS NULL OR e.to_status <> r.status"""


def _numbers(states: StateMachine, dialect: Dialect) -> str:
    begins_elsewhere = "e.lowest <> 1"
    if states.pruned:
        # The history of a pruned row begins with the event that records the pruning.
        begins_elsewhere = """e.lowest <> COALESCE(e.pruned, 1)
            OR (r.pruned_at IS NULL AND e.pruned IS NOT NULL) OR (r.pruned_at IS NOT NULL AND e.pruned IS NULL)"""
    return f"""
        SELECT '{states.kind}', r.id FROM {states.model._meta.db_table} r
        LEFT JOIN (
            SELECT subject_id, COUNT(*) AS events, MIN(sequence) AS lowest, MAX(sequence) AS highest,
                MIN(CASE WHEN kind = '{states.pruned}' THEN sequence END) AS pruned
            FROM events WHERE subject_kind = '{states.kind}' GROUP BY subject_id
        ) e ON e.subject_id = r.id
        WHERE e.events IS NULL OR e.highest - e.lowest + 1 <> e.events OR e.highest <> r.last_sequence
            OR {begins_elsewhere}"""


def _fence(states: StateMachine, dialect: Dialect) -> str:
    held = states.claimed or ""
    return f"""
        SELECT DISTINCT '{states.kind}', e.subject_id FROM (
            SELECT subject_id, from_status, to_status, claim_token,
                LAG(to_status) OVER (PARTITION BY subject_id ORDER BY sequence) AS before_status,
                LAG(claim_token) OVER (PARTITION BY subject_id ORDER BY sequence) AS before_token
            FROM events WHERE subject_kind = '{states.kind}' AND to_status <> ''
        ) e
        WHERE (e.before_status IS NULL AND e.from_status <> '')
            OR e.from_status <> e.before_status
            OR (e.from_status = '{held}' AND e.claim_token <> e.before_token)
            OR (e.from_status <> '{held}' AND e.to_status = '{held}' AND e.claim_token <> e.before_token + 1)"""


def _times(states: StateMachine, dialect: Dialect) -> str | None:
    model = states.model
    if not issubclass(model, Work):
        return None
    known = {states.initial, *(status for verb in states for status in (*states[verb].origins, states[verb].target))}
    ended = f"status IN ({words(model.TERMINAL)})"
    under_way = f"status = '{model.ACTIVE}'"
    return f"""
        SELECT '{states.kind}', id FROM {model._meta.db_table}
        WHERE status NOT IN ({words(known)})
            OR ({ended} AND finished_at IS NULL)
            OR (NOT {ended} AND finished_at IS NOT NULL)
            OR ({under_way} AND started_at IS NULL)
            OR (NOT {under_way} AND NOT {ended} AND started_at IS NOT NULL)
            OR started_at < created_at
            OR finished_at < COALESCE(started_at, created_at)"""


def _lease(states: StateMachine, dialect: Dialect) -> str | None:
    if not issubclass(states.model, Work):
        return None
    held = f"status = '{states.claimed or ''}'"
    return f"""
        SELECT '{states.kind}', id FROM {states.model._meta.db_table}
        WHERE ({held} AND (lease_owner IS NULL OR lease_expires_at IS NULL OR claim_token < 1))
            OR (NOT {held} AND (lease_owner IS NOT NULL OR lease_expires_at IS NOT NULL))"""


def _event_times(dialect: Dialect) -> str:
    newest = f"(SELECT MAX(id) FROM events) - {NEWEST_EVENTS}"
    return f"""
        SELECT DISTINCT e.subject_kind, e.subject_id FROM (
            SELECT subject_kind, subject_id, at,
                LAG(at) OVER (PARTITION BY subject_kind, subject_id ORDER BY sequence) AS before_at
            FROM events WHERE id > {newest}
        ) e
        WHERE e.at < e.before_at"""


def _lost(states: StateMachine, dialect: Dialect) -> str | None:
    if states.claimed is None:
        return None
    return f"""
        SELECT '{states.kind}', id FROM {states.model._meta.db_table}
        WHERE status = '{states.claimed}' AND lease_expires_at < {dialect.ago(RESCUE_SECONDS)}
            AND {dialect.a_worker_was_there(RESCUE_SECONDS)}"""


_BY_HAND = "The table was changed outside ADE. Compare the row with its events, and correct the row."

INVARIANTS = (
    Invariant(
        "status_is_that_of_the_last_event",
        "Every row has the status that its last event reports.",
        _for_every_kind(_last_event),
        _BY_HAND,
    ),
    Invariant(
        "times_agree_with_the_status",
        "Work is created, started and finished in this order, and has exactly the times that its status implies.",
        _for_every_kind(_times),
        _BY_HAND,
    ),
    Invariant(
        "a_lease_is_held_exactly_while_claimed",
        "Claimed work has an owner and a lease with an end; other work has neither.",
        _for_every_kind(_lease),
        f"{_BY_HAND} A claim without an end is never recovered.",
    ),
    Invariant(
        "moves_follow_one_another_under_one_claim",
        "Every transition starts from the status where the last one ended, and a claim ends with its own token.",
        _for_every_kind(_fence),
        DEFECT,
    ),
    Invariant(
        "events_are_numbered_without_gaps",
        "The events of a row are numbered without gaps, from one or from its pruning, and it knows the last number.",
        _for_every_kind(_numbers, and_other_subjects=True),
        "Events are missing: some were deleted, or only a part of the database was restored.",
    ),
    Invariant(
        "event_times_never_decrease",
        f"No event is earlier than the previous event of the same row (newest {NEWEST_EVENTS:,} events).",
        _event_times,
        f"{DEFECT} If a worker of an older version kept running after the upgrade, nothing needs to be done.",
    ),
    Invariant(
        "lost_work_is_moved_on",
        f"While a worker is alive, no claim remains for more than {RESCUE_SECONDS} s after its lease expired.",
        _for_every_kind(_lost),
        "`manage.py rescue` recovers it now. Look for `recovery.failed` in the logs of the workers.",
    ),
)
