"""Whatever is asked for, and on whatever page: the same as by looking at all rows."""

import itertools
import random
from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model

from documents.models import Narrowed
from runs import listing
from runs.listing import Piece, Wanted
from runs.models import Run
from tests.factories import ConfigurationFactory, DocumentFactory, MembershipFactory, RunFactory, force_status
from work import clock

pytestmark = pytest.mark.django_db
PAGE = 3


def found(user, wanted, *, is_newest_first):
    """All of it, page by page."""
    ids, after = [], None
    while True:
        piece = Piece(PAGE, after, is_newest_first)
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
        # Not quite in the order of ids.
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
        (Narrowed(both, workspace.pk, frozenset({"viewer"})), own),
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
        wanted = Wanted(**of, **time, outcomes=chosen)
        right = expected(runs, mine, wanted)
        assert found(user, wanted, is_newest_first=is_newest_first) == right[:: 1 if is_newest_first else -1], wanted


def runs_elsewhere(runs, own):
    return next(run.workspace for run in runs if run.workspace_id not in own)


def test_nobody_lists_nothing(zed, runs):
    assert found(zed, Wanted(), is_newest_first=True) == []


def test_without_runs_every_list_is_empty(olga):
    assert found(olga, Wanted(created_after=clock.now(), created_before=clock.now()), is_newest_first=True) == []
