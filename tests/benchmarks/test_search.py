import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.goals import search_goals_of

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]
# A machine with other load is slower than the goals, but finds exactly as much.
BUSY = 4


@pytest.mark.soak
@pytest.mark.parametrize(("database", "most_ms"), [("postgres", 50), ("sqlite", 250)])
def test_twenty_thousand_chunks_are_searched_in_time(tmp_path, database, most_ms):
    file = tmp_path / "found.json"
    command = [sys.executable, "-m", "benchmarks", "--quick", "--only", "search", "--rounds", "1"]

    done = subprocess.run(
        [*command, "--database", database, "--json", str(file)], cwd=ROOT, capture_output=True, text=True, timeout=1100
    )

    assert done.returncode == 0, done.stderr
    found = json.loads(file.read_text())
    told = {line["text"]: line["measured"] for line in found["goals"]}
    assert {goal.text for goal in search_goals_of(database, most_ms)} <= told.keys()
    assert told[f"{database}: p95 ms of a search"] < BUSY * most_ms
    # Other load hardly affects processor time.
    assert told[f"{database}: processor ms of a search"] < most_ms
    if database == "postgres":
        assert told["postgres: share of the nearest ten found"] >= 0.95
