"""Permissions for the rows that all workspaces share."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.api.programs import V1, Person, Program, editor_of
from tests.factories import (
    ArticleFactory,
    BriefItemFactory,
    ClusterArticleFactory,
    FeedFactory,
    JobRunFactory,
    UserFactory,
)
from tests.schedules.declared import EACH
from work import boots

pytestmark = [pytest.mark.edge, pytest.mark.django_db]

READ = [
    "/jobs",
    "/jobs/each",
    "/jobs/each/ledger",
    "/jobs/each/runs",
    "/jobs/each/runs/{job_run}",
    "/jobs/each/events",
    "/jobs/each/why",
    "/feeds",
    "/feeds/export",
    "/feeds/{feed}",
    "/feeds/{feed}/articles",
    "/feeds/{feed}/events",
    "/clusters",
    "/clusters/{cluster}",
    "/clusters/{cluster}/articles",
    "/briefs",
    "/briefs/{brief}",
    "/workers",
    "/workers/{worker}",
]
NEW = {"url": "https://tides.example.org/rss"}
RANGE = {"from": "2026-03-01T06:00:00Z", "to": "2026-03-01T07:00:00Z"}
CHANGE = [
    ("post", "/jobs/each/runs", None, 201),
    ("post", "/jobs/each/runs", {"slot": "2026-03-01T06:00:00Z"}, 201),
    ("post", "/jobs/each/backfill", RANGE, 201),
    ("post", "/jobs/each/backfill", RANGE | {"rehearse": True}, 200),
    ("post", "/jobs/each/pause", None, 200),
    ("post", "/feeds", NEW, 201),
    ("post", "/feeds/{feed}/check", None, 200),
    ("post", "/feeds/{feed}/pause", None, 200),
    ("patch", "/feeds/{feed}", {"title": "Tides"}, 200),
    ("delete", "/feeds/{empty}", None, 200),
]
MAY_NOT = ["olga", "ravi", "zed", "olga's program", "edda's reader"]
MAY = ["edda", "root", "edda's program"]


@pytest.fixture
def rows(settings):
    settings.JOBS = [EACH]
    link, item, feed = ClusterArticleFactory(), BriefItemFactory(), FeedFactory()
    ArticleFactory(feed=feed)
    named = {"feed": feed.pk, "empty": FeedFactory().pk, "cluster": link.cluster_id, "brief": item.brief.name}
    return named | {
        "job_run": JobRunFactory(job_name="each").pk,
        "worker": boots.register("w1", "boot1", {"run": 2}).pk,
    }


@pytest.fixture
def who(workspace, olga, ravi, zed):
    edda = editor_of(workspace)
    people = {"olga": olga, "ravi": ravi, "zed": zed, "edda": edda}
    people["root"] = UserFactory(username="root", is_superuser=True)
    found = {name: Person(user) for name, user in people.items()}
    found["olga's program"] = Program(olga, workspace, "operate", "installation")
    found["ravi's reader"] = Program(ravi, workspace, "read")
    found["edda's program"] = Program(edda, workspace, "installation")
    found["edda's reader"] = Program(edda, workspace, "operate", "admin", name="reader")
    return found


def test_what_all_workspaces_share_is_told_to_whoever_is_in_one(rows, who):
    for name in ("olga", "ravi", "root", "ravi's reader"):
        asked = {path: who[name].get(path.format(**rows)).status_code for path in READ}

        assert set(asked.values()) == {200}, (name, asked)


def test_who_is_in_no_workspace_is_told_nothing_of_it(rows, who, client):
    for path in [*READ, "/health/details"]:
        answer = who["zed"].get(path.format(**rows))

        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden"), path
        assert client.get(f"{V1}{path.format(**rows)}").status_code == 401


@pytest.mark.parametrize("name", MAY_NOT)
def test_only_with_the_permission_of_the_admin_is_anything_changed(rows, who, name):
    for method, path, body, _ in [*CHANGE, ("post", "/jobs/each/resume", None, 200)]:
        answer = who[name].ask(method, path.format(**rows), body)

        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden"), path


@pytest.mark.parametrize("name", MAY)
def test_with_the_permission_everything_is_done(rows, who, name):
    for method, path, body, status in CHANGE:
        answer = who[name].ask(method, path.format(**rows), body)

        assert answer.status_code == status, (path, answer.json())


def test_what_is_not_there_is_said_to_be_not_there(rows, who):
    gone = dict.fromkeys(rows, 10**12) | {"brief": "1999-01-01"}
    paths = [path for path in READ if "{" in path]
    paths = [path.format(**gone) for path in paths] + ["/jobs/none", "/jobs/none/ledger", "/jobs/%00", "/briefs/%00"]
    for path in [*paths, "/feeds/9223372036854775808", "/jobs/none/runs", "/jobs/none/events", "/jobs/none/why"]:
        answer = who["olga"].get(path)

        assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), path
    for method, path, body, _ in CHANGE:
        if "{" in path:
            assert who["edda"].ask(method, path.format(**gone), body).status_code == 404


def test_nothing_is_changed_by_looking(rows, who):
    with CaptureQueriesContext(connection) as asked:
        for path in READ:
            who["olga"].get(path.format(**rows))

    others = [
        query["sql"] for query in asked if not query["sql"].startswith(("SELECT", "DECLARE", "SAVEPOINT", "RELEASE"))
    ]
    assert others == []
