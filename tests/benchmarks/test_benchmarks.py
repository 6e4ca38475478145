import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.goals import GOALS
from benchmarks.report import Goal, Samples, lines, table

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]


# Three minutes on an idle machine.
@pytest.mark.timeout(3600)
@pytest.mark.long(seconds=200)
def test_it_measures_every_goal_on_both_databases(tmp_path):
    found = measured(tmp_path)

    assert [line["text"] for line in found["goals"]] == [goal.text for goal in GOALS]
    assert found["samples"]["sqlite.drain.plain"][0] > 0
    assert found["samples"]["sqlite.refused"] == [0]
    # Each run of a worker has exactly three events.
    assert found["samples"]["postgres.workers.2x1.events each"] == [3.0]
    assert found["samples"]["sqlite.workers.1x2.events each"] == [3.0]
    assert all(line["measured"] > 0 for line in found["goals"] if line["goal"] in ("h", "i", "j"))


def test_a_goal_is_met_or_says_by_how_much_it_is_missed():
    samples = Samples()
    for one, other in ((40, 100), (60, 100), (45, 100)):
        samples.add("one", one)
        samples.add("other", other)
    goals = [
        Goal("a", "missed", "one", "other", at_least=0.5),
        Goal("b", "met", "one", "other", at_least=0.4),
        Goal("c", "too much", "one", None, at_most=40),
        Goal("d", "not measured", "nothing", None, at_most=1),
    ]

    found = lines(goals, samples)

    assert [line.verdict for line in found] == ["missed (-10%)", "ok", "missed (+12%)"]
    assert "missed (-10%)" in table(found)


def measured(directory):
    file = directory / "found.json"
    command = [sys.executable, "-m", "benchmarks", "--tiny", "--json", str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=3500, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(file.read_text())
