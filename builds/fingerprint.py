"""Computes fingerprints. A fingerprint is the hash of everything that a build depends on."""

import hashlib
import json
import platform
import sys
from pathlib import Path
from typing import TypedDict

import ade_engine
import ade_keeper

PYTHON_VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
PLATFORM = f"{platform.system()}-{platform.machine()}".lower()


class Snapshot(TypedDict):
    entry_point: str
    requirements: str
    python_version: str
    files: dict[str, str]


def of_contents(snapshot: Snapshot) -> str:
    return _sha256(snapshot)


def of_build(contents_sha256: str) -> str:
    return _sha256([contents_sha256, ENGINE_VERSION, PYTHON_VERSION, PLATFORM])


def _sha256(value: object) -> str:
    # The keys are sorted, so that the order of a dictionary makes no difference.
    return hashlib.sha256(
        json.dumps(value, sort_keys=True, ensure_ascii=False).encode(errors="surrogatepass")
    ).hexdigest()


# The engine's version is the hash of its sources. An environment contains a copy of the engine, which must be the
# version that the host expects.
_SOURCES = [path for package in (ade_engine, ade_keeper) for path in Path(package.__path__[0]).glob("*.py")]
ENGINE_VERSION = _sha256({f"{path.parent.name}/{path.name}": path.read_text("utf-8") for path in _SOURCES})[:12]
