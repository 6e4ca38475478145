import pytest

from runs import queue

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


def test_it_is_paused_with_a_reason_and_goes_on(manage):
    paused = manage("queue", "pause", "--reason", "a disk is full", "--as", "olga", "--json")
    again = manage("queue", "pause", "--json")
    resumed = manage("queue", "resume", "--json")

    assert (paused.code, paused.json["result"], paused.json["paused_by"]) == (0, "paused", "olga (command)")
    assert (again.code, again.json["result"]) == (1, "was paused already")
    assert (resumed.code, resumed.json["result"], queue.current_row().paused_at) == (0, "goes on", None)
    assert manage("queue", "resume").code == 1
