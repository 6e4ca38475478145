import pytest
from django.core.management import get_commands

from config.management.commands.qcluster import REFUSAL

pytestmark = pytest.mark.edge


@pytest.mark.parametrize("arguments", [(), ("--run-once",), ("-n", "other")])
def test_the_cluster_of_django_q_is_not_started(manage, arguments):
    ended = manage("qcluster", *arguments)

    assert (ended.code, ended.out) == (1, "")
    assert REFUSAL in ended.err


def test_ours_is_found_before_that_of_django_q():
    assert get_commands()["qcluster"] == "config"
