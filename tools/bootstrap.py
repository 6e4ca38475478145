#!/usr/bin/env python3
"""Create the virtual environment and install the pinned uv into it. Uses only the standard library.

Usage: bootstrap.py DIRECTORY
"""

from __future__ import annotations  # an old Python must get as far as the message that it is too old

import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import venv

OLDEST = (3, 11)
ROOT = pathlib.Path(__file__).resolve().parent.parent
NO_PIP = (
    "This Python has neither ensurepip nor pip, so nothing can be installed with it.\n"
    "On Debian or Ubuntu: apt-get install python3-venv python3-pip. Then run `make setup` again."
)

NO_UV = (
    "uv could not be installed; the lines above say why.\n"
    "No network: connect, or name a proxy in HTTPS_PROXY or a package index in PIP_INDEX_URL.\n"
    "CERTIFICATE_VERIFY_FAILED: name the certificate of your company's authority in PIP_CERT.\n"
    "No space left: free disk space. Then run `make setup` again."
)


def version_problem(version: tuple[int, ...], executable: str) -> str | None:
    if version[:2] >= OLDEST:
        return None
    current = ".".join(str(part) for part in version)
    oldest = ".".join(str(part) for part in OLDEST)
    return (
        f"ADE needs Python {oldest} or newer; {executable} is {current}.\n"
        f"Choose another one, for example: make setup PY=python{oldest}"
    )


def pinned_uv(requirements: str) -> str:
    """Return the lines of a compiled requirements file that pin uv and its hashes."""
    block = re.search(r"^uv==(?:.*\\\n)+.*", requirements, re.MULTILINE)
    if block is None:
        raise SystemExit("requirements/base.txt does not pin uv; run `make requirements` with a working .venv.")
    return block.group(0) + "\n"


def install_uv(directory: pathlib.Path, pip: list[str]) -> int:
    with tempfile.TemporaryDirectory() as scratch:
        requirements = pathlib.Path(scratch, "uv.txt")
        requirements.write_text(pinned_uv((ROOT / "requirements" / "base.txt").read_text()))
        command = [*pip, "install", "--quiet", "--disable-pip-version-check", "--require-hashes"]
        return subprocess.call([*command, "-r", str(requirements)], stdin=subprocess.DEVNULL)


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        sys.exit(__doc__)
    problem = version_problem(sys.version_info[:3], sys.executable)
    if problem:
        sys.exit(problem)
    # Debian without python3-venv has venv but not ensurepip. The host's own pip can do the same.
    has_ensurepip = importlib.util.find_spec("ensurepip") is not None
    if not has_ensurepip and importlib.util.find_spec("pip") is None:
        sys.exit(NO_PIP)
    directory = pathlib.Path(arguments[0]).resolve()
    try:
        venv.EnvBuilder(with_pip=has_ensurepip, clear=True, symlinks=os.name == "posix").create(directory)
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        # ensurepip runs as a child process, which fails if the disk is full.
        sys.exit(f"{directory} cannot be created: {error}\nCheck the free space and your permission to write there.")
    python = str(directory / "bin" / "python")
    pip_inside = [python, "-m", "pip"]
    pip_of_host = [sys.executable, "-m", "pip", "--python", python]
    if install_uv(directory, pip_inside if has_ensurepip else pip_of_host) != 0:
        sys.exit(NO_UV)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
