"""The response time does not reveal whether another workspace has the requested object (S12)."""

import statistics
import time

import pytest
from django.test import Client

from api import tokens
from tests.api.table import ROWS, Shared
from tests.api.test_every_route import NOBODYS, made
from tests.factories import UserFactory, WorkspaceFactory

pytestmark = [pytest.mark.long, pytest.mark.django_db]

TIMES, MOST_APART_SECONDS = 21, 0.05
READ_BY_ID = sorted(
    name
    for name, row in ROWS.items()
    if name.startswith("GET ") and list(row.ids) == ["id"] and not isinstance(row.ids["id"], Shared)
)


@pytest.mark.parametrize("name", READ_BY_ID)
def test_what_others_have_is_refused_as_fast_as_what_nobody_has(name, workspace):
    root = UserFactory(is_superuser=True)
    _, shown = tokens.issue(workspace, root, "asks", ["read", "admin"], actor="olga")
    client = Client(headers={"Authorization": f"Bearer {shown}"})
    row = ROWS[name]
    query = made(row.query, workspace)
    took = {made(row.ids, WorkspaceFactory())["id"]: [], NOBODYS: []}

    # Alternate, and measure processor time: other load on this machine then affects both hardly at all.
    for _ in range(TIMES):
        for id, seconds in took.items():
            began = time.process_time()
            answer = client.get(name.split()[1].format(id=id), query)
            seconds.append(time.process_time() - began)
            assert answer.status_code == 404

    foreign, unknown = (statistics.median(seconds) for seconds in took.values())
    assert abs(foreign - unknown) < MOST_APART_SECONDS
