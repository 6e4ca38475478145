import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.goals import feeds_goals_of

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.long
@pytest.mark.parametrize("database", ["postgres", "sqlite"])
def test_feeds_are_asked_in_little_memory_and_again_in_no_time(tmp_path, database):
    file = tmp_path / "found.json"
    command = [sys.executable, "-m", "benchmarks", "--only", "feeds", "--quick", "--rounds", "1"]

    done = subprocess.run(
        [*command, "--database", database, "--json", str(file)], cwd=ROOT, capture_output=True, text=True, timeout=1100
    )

    assert done.returncode == 0, done.stderr
    told = {line["text"]: line for line in json.loads(file.read_text())["goals"]}
    assert {goal.text for goal in feeds_goals_of(database)} <= told.keys()
    # Low enough for a machine with other load.
    assert told[f"{database}: s for feeds never asked / with nothing new"]["ratio"] > 5
    assert told[f"{database}: MB of the process that fetches them"]["measured"] < 300
