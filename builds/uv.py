"""Command lines and environment variables for uv."""

import os
import re
from pathlib import Path

import uv
from django.conf import settings

# Operators configure package sources and network access with uv's own variables, which are passed on to uv. Variables
# for building from source and for compiling are not, because they would run a package's code in a process that can
# write to the cache.
_PASSED = re.compile(
    r"UV_(?!NO_BINARY|ONLY_BINARY|NO_BUILD|BUILD|COMPILE|NO_CACHE|VENV).*|SSL_CERT_(FILE|DIR)"
    r"|(HTTPS?|ALL|NO)_PROXY|(https?|all|no)_proxy"
)
# Matches uv's messages when a package index is unreachable. If the packages are in the cache, uv may work offline then.
_NO_NETWORK = re.compile(
    r"error sending request|dns error|failed to (fetch|lookup)|connection (refused|reset)|network (is )?unreachable"
    r"|request failed after|could not connect|timed out",
    re.IGNORECASE,
)


def program() -> str:
    return uv.find_uv_bin()


def cache() -> Path:
    return Path(settings.ADE_CACHE_DIR)


def variables() -> dict[str, str]:
    passed = {name: value for name, value in os.environ.items() if _PASSED.fullmatch(name)}
    ours = {
        "UV_CACHE_DIR": str(cache()),
        # With hard links, a write in one environment would reach the cache and all other environments. "clone" falls
        # back to hard links where the file system cannot share blocks, but "copy" never does.
        "UV_LINK_MODE": "copy",
        "UV_NO_CONFIG": "1",
        "UV_NO_PROGRESS": "1",
        "NO_COLOR": "1",
    }
    # uv downloads no interpreters unless the operator allows it. It uses the system's certificate store, because a
    # company's own certificate authority is there and not among uv's certificates.
    defaults = {"UV_PYTHON_DOWNLOADS": "never", "UV_HTTP_TIMEOUT": "30", "UV_SYSTEM_CERTS": "1"}
    return {**defaults, **passed, **ours}


def compile_lock(python: str, requirements: Path, lock: Path, *, offline: bool) -> list[str]:
    """Return the command that pins the version of every package and the hashes of its files."""
    return [
        *(program(), "pip", "compile", "--quiet"),
        *("--generate-hashes", "--no-header", "--no-annotate", "--no-emit-index-url"),
        *("--only-binary", ":all:", "--python", python, "--output-file", str(lock), *_offline(offline)),
        *("--", str(requirements)),
    ]


def make_environment(python: str, home: Path) -> list[str]:
    return [program(), "venv", "--quiet", "--relocatable", "--no-project", "--python", python, "--", str(home)]


def install(home: Path, lock: Path, *, offline: bool, cached: bool = True) -> list[str]:
    """Return the command that installs the lock's packages.

    It installs only wheels, because building a package from source would run its code with network access.
    """
    return [
        *(program(), "pip", "sync", "--require-hashes", "--only-binary", ":all:", "--python", str(home)),
        *_offline(offline),
        *([] if cached else ["--no-cache"]),
        *("--", str(lock)),
    ]


def lacks_network(output: str) -> bool:
    return _NO_NETWORK.search(output) is not None


def _offline(offline: bool) -> list[str]:
    return ["--offline"] if offline else []
