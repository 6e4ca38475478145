import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.goals import ON_SQLITE_ALONE

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.long
def test_every_part_with_real_workers_and_engines(tmp_path):
    file = tmp_path / "found.json"
    command = [sys.executable, "-m", "benchmarks", "--tiny", "--only", "engines", "--database", "sqlite"]

    done = subprocess.run([*command, "--json", str(file)], cwd=ROOT, capture_output=True, text=True, timeout=280)

    assert done.returncode == 0, done.stderr
    found = json.loads(file.read_text())
    told = [line["text"] for line in found["goals"]]
    assert told == ["sqlite: ms commit to step", "sqlite: p99 ms commit to step", *(g.text for g in ON_SQLITE_ALONE)]
    assert all(line["measured"] > 0 for line in found["goals"] if line["goal"] in ("h", "i", "j"))
