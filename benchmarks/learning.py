"""Measure how much one corrected document of a sender helps with its other documents: `python -m benchmarks.learning
FOLDER [--list]`.

The folder has PDF files and `truth.jsonl`, with lines such as {"pdf": "a.pdf", "truth": {"seller": "X Ltd",
"invoice_number": "12"}}. In every family of three or more documents of one seller, each document in turn is corrected
to its truth; the lessons are then applied to the others. What counts are the values that are printed alike: with the
same label, or in the same place, as on the corrected document. E-invoices inside the files are not used.

Everything happens in a temporary database, in a process of its own: see `benchmarks/learned.py`.
"""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory


def main() -> int:
    with TemporaryDirectory() as directory:
        variables = {
            "DATABASE_URL": f"sqlite:///{Path(directory, 'learning.sqlite3')}",
            "ADE_VAR_DIR": directory,
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "PYTHONPATH": os.pathsep.join((".", "programs", "clients/python")),
        }
        command = [sys.executable, "-m", "benchmarks.learned", *sys.argv[1:]]
        return subprocess.run(command, env=os.environ | variables, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
