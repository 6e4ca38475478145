import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.goals import reading_goals_of

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]
# Other load on the machine slows down the worker, and the bare loop hardly.
BUSY = 6


@pytest.mark.soak
@pytest.mark.parametrize("database", ["postgres", "sqlite"])
def test_a_long_document_is_read_in_time_and_little_memory(tmp_path, database):
    file = tmp_path / "found.json"
    command = [sys.executable, "-m", "benchmarks", "--only", "reading", "--rounds", "2", "--database", database]

    done = subprocess.run([*command, "--json", str(file)], cwd=ROOT, capture_output=True, text=True, timeout=1100)

    assert done.returncode == 0, done.stderr
    told = {line["text"]: line["measured"] for line in json.loads(file.read_text())["goals"]}
    assert {goal.text for goal in reading_goals_of(database)} <= told.keys()
    assert told[f"{database}: reading a long PDF / bare pdfium"] < BUSY * 1.5
    assert told[f"{database}: MB of the worker that reads"] < 200
    assert told[f"{database}: s upload to searchable, 3 pages"] < BUSY * 1.5
