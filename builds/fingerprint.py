"""What makes two environments the same: everything that went into them, hashed."""

import hashlib
import json
import platform
import sys
from typing import TypedDict

# Raised when the engine changes in a way that makes earlier environments unfit.
ENGINE_VERSION = "1"
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
    # Sorted keys: the order in which a dictionary was filled is no difference.
    return hashlib.sha256(
        json.dumps(value, sort_keys=True, ensure_ascii=False).encode(errors="surrogatepass")
    ).hexdigest()
