"""Measure ADE together with other task queues.

    python -m benchmarks.peers FOLDER [--peers NAME …] [any option of FOLDER/run_peers.py]

FOLDER contains the benchmark of the peers and its README. The folder is copied, not changed. The peers' packages are
installed into an environment that is removed afterwards.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PEERS = ["ade", "ade-slots", "procrastinate", "procrastinate-django", "pgqueuer", "django-tasks-db", "django-q2-orm"]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.peers", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--peers", nargs="+", default=PEERS)
    options, rest = parser.parse_known_args(arguments)
    with tempfile.TemporaryDirectory(prefix="ade-peers-") as scratch:
        os.chmod(scratch, 0o755)  # noqa: S103  # as root, the database server runs as another user
        folder = Path(scratch, "peers")
        shutil.copytree(options.folder, folder, copy_function=shutil.copyfile)
        folder.chmod(0o755)
        for file in ("peer_ade.py", "run.py"):
            shutil.copyfile(ROOT / "benchmarks" / "peers" / file, folder / file)
        python = _environment(Path(scratch), folder / "requirements.txt")
        command = [str(python), "run.py", "--peers", *options.peers, "--skip-floors", "--skip-limits", *rest]
        out = [] if "--out" in rest else ["--out", str(Path.cwd() / "var" / "peers")]
        return subprocess.call([*command, *out], cwd=folder, env={**os.environ, "ADE_ROOT": str(ROOT)})


def _environment(scratch: Path, peers: Path) -> Path:
    """Create an environment with the newest packages of the peers and the pinned packages of ADE."""
    uv, python = Path(sys.executable).with_name("uv"), scratch / "venv" / "bin" / "python"
    pinned = scratch / "pinned.txt"
    lines = (ROOT / "requirements" / "base.txt").read_text().splitlines()
    pinned.write_text("\n".join(line.rstrip(" \\") for line in lines if "==" in line and not line.startswith(" ")))
    subprocess.run([uv, "venv", "-q", "--python", sys.executable, scratch / "venv"], check=True)
    subprocess.run([uv, "pip", "install", "-q", "--python", python, "-r", peers, "-r", pinned], check=True)
    return python


if __name__ == "__main__":
    sys.exit(main())
