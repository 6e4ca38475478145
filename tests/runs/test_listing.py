"""Lists of runs, with any filter and on any page, contain the same rows as a full scan."""

import itertools
import random
from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AnonymousUser
from django.db import connection

from runs import listing
from runs.listing import PageRequest, RunFilter
from runs.models import Run
from tests.factories import (
    ConfigurationFactory,
    DocumentFactory,
    MembershipFactory,
    RunFactory,
    UserFactory,
    force_status,
    write,
)
from work import clock
from work.sql import statements
from workspaces.models import LimitedUser

pytestmark = pytest.mark.django_db
PAGE = 3


def found(user, wanted, *, is_newest_first):
    """Return all matching IDs, read page by page."""
    ids, after = [], None
    while True:
        piece = PageRequest(PAGE, after, is_newest_first)
        rows = listing.runs(user, wanted, piece)
        if after is not None:
            rows = rows.filter(**{"pk__lt" if is_newest_first else "pk__gt": after})
        page = list(rows.order_by("-pk" if is_newest_first else "pk").values_list("pk", flat=True)[:PAGE])
        if not page:
            return ids
        ids, after = ids + page, page[-1]


def expected(runs, mine, wanted):
    return [
        run.pk
        for run in runs
        if run.workspace_id in mine
        and wanted.workspace_id in (None, run.workspace_id)
        and wanted.configuration_id in (None, run.configuration_id)
        and wanted.build_id in (None, run.build_id)
        and wanted.input_document_id in (None, run.input_document_id)
        and (wanted.outcomes is None or run.outcome in wanted.outcomes)
        and (wanted.created_after is None or run.created_at >= wanted.created_after)
        and (wanted.created_before is None or run.created_at < wanted.created_before)
    ]


@pytest.fixture
def runs(workspace):
    chance, now = random.Random(1), clock.now()
    made = [
        ConfigurationFactory(workspace=workspace),
        ConfigurationFactory(workspace=workspace),
        ConfigurationFactory(),
    ]
    documents = {each: [DocumentFactory(workspace=each.workspace) for _ in range(2)] for each in made}
    for n in range(24):
        configuration = chance.choice(made)
        run = RunFactory(configuration=configuration, input_document=chance.choice(documents[configuration]))
        status = chance.choice(["queued", "succeeded", "failed", "failed", "cancelled"])
        failure = {"failure_type": chance.choice(["TIMED_OUT", "ENGINE_FAILED"])} if status == "failed" else {}
        # The order by time differs a little from the order by ID.
        moment = now - timedelta(hours=24 - n, minutes=chance.randint(0, 4) if n % 3 == 0 else 0)
        force_status(run, status, created_at=moment, **failure)
    return list(Run.objects.order_by("-pk"))


def test_a_list_is_what_was_asked_for(runs, workspace, olga):
    own = {each.pk for each in [workspace]}
    MembershipFactory(user=(both := MembershipFactory(workspace=workspace).user), workspace=runs_elsewhere(runs, own))
    everything = {run.workspace_id for run in runs}
    root = get_user_model().objects.create(username="root", is_superuser=True)
    callers = [
        (olga, own),
        (both, everything),
        (root, everything),
        (LimitedUser(both, workspace.pk, frozenset({"viewer"})), own),
    ]
    moments = [run.created_at for run in runs]
    one = runs[5]
    ids = [
        {},
        {"workspace_id": workspace.pk},
        {"configuration_id": one.configuration_id},
        {"build_id": one.build_id},
        {"input_document_id": one.input_document_id},
        {"input_document_id": one.input_document_id, "build_id": runs[0].build_id},
        {"configuration_id": one.configuration_id, "build_id": runs[0].build_id},
        {"workspace_id": workspace.pk, "configuration_id": one.configuration_id},
    ]
    outcomes = [None, ("failed",), ("timed_out",), ("failed", "timed_out"), ("succeeded",), ("running",), ()]
    times = [
        {},
        {"created_after": moments[7]},
        {"created_before": moments[7]},
        {"created_after": moments[15], "created_before": moments[7]},
        {"created_after": clock.now()},
    ]
    asked = list(itertools.product(callers, ids, outcomes, times, (True, False)))

    for (user, mine), of, chosen, time, is_newest_first in random.Random(2).sample(asked, 120):
        wanted = RunFilter(**of, **time, outcomes=chosen)
        right = expected(runs, mine, wanted)
        assert found(user, wanted, is_newest_first=is_newest_first) == right[:: 1 if is_newest_first else -1], wanted


def runs_elsewhere(runs, own):
    return next(run.workspace for run in runs if run.workspace_id not in own)


def test_those_that_ended_last_are_found_however_long_ago_they_were_submitted(runs, workspace, olga):
    chance, now = random.Random(3), clock.now()
    both, root = MembershipFactory(workspace=workspace).user, UserFactory(is_superuser=True)
    MembershipFactory(user=both, workspace=runs_elsewhere(runs, {workspace.pk}))
    ended = [run for run in runs if run.finished_at]
    for run in ended:
        began, at = now - timedelta(days=9), now - timedelta(hours=chance.randint(0, 9))
        write(run, created_at=began, started_at=began, finished_at=at)
    ended.sort(key=lambda run: (run.finished_at, run.pk), reverse=True)

    for user, mine in (
        (olga, {workspace.pk}),
        (both, None),
        (root, None),
        (LimitedUser(both, workspace.pk, frozenset()), {workspace.pk}),
    ):
        for since, most in itertools.product((now - timedelta(hours=5), now - timedelta(hours=20), now), (1, 4, 99)):
            right = [run.pk for run in ended if run.finished_at >= since and (mine is None or run.workspace_id in mine)]
            rows = (
                listing.recently_ended(user, since, most).order_by("-finished_at", "-pk").values_list("pk", flat=True)
            )
            assert list(rows[:most]) == right[:most], (user, since, most)


@pytest.mark.only_on("postgresql")
def test_what_has_ended_is_found_by_the_index_of_ends(runs, olga, monkeypatch):
    asked = []
    monkeypatch.setattr(statements, "rows", lambda *of: asked.append(of) or [])
    list(listing.recently_ended(olga, clock.now() - timedelta(hours=5), 3))
    ((sql, params),) = asked
    with connection.cursor() as cursor:
        # Otherwise the planner scans a table with so few rows.
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN {sql}", params)
        plan = "\n".join(line for (line,) in cursor.fetchall())

    assert "using runs_by_end on runs" in plan
    assert "(finished_at >= " in plan


@pytest.mark.parametrize("is_newest_first", [True, False])
def test_workspaces_that_are_known_already_are_not_asked_for(runs, olga, workspace, is_newest_first):
    own, wanted, piece = (
        frozenset([workspace.pk]),
        RunFilter(created_after=runs[15].created_at),
        PageRequest(99, is_newest_first=is_newest_first),
    )

    known = listing.runs(olga, wanted, piece, own)

    assert {*known} == {*listing.runs(olga, wanted, piece)}


def test_nobody_lists_nothing(zed, runs):
    assert found(zed, RunFilter(), is_newest_first=True) == []
    assert list(listing.recently_ended(zed, clock.now() - timedelta(days=9), 9)) == []
    assert list(listing.recently_ended(AnonymousUser(), clock.now() - timedelta(days=9), 9)) == []


def test_without_runs_every_list_is_empty(olga):
    assert found(olga, RunFilter(created_after=clock.now(), created_before=clock.now()), is_newest_first=True) == []
