"""What uv is asked to do, and in which environment."""

import os
import re
from pathlib import Path

import uv
from django.conf import settings

from builds import environments

# Where packages come from and how to get there is for the operator to say, in the words of uv.
_PASSED = re.compile(r"UV_.*|SSL_CERT_(FILE|DIR)|(HTTPS?|ALL|NO)_PROXY|(https?|all|no)_proxy")
# What uv says when an index cannot be reached; with a warm cache it may do without.
_NO_NETWORK = re.compile(
    r"error sending request|dns error|failed to (fetch|lookup)|connection (refused|reset)|network (is )?unreachable"
    r"|request failed after|could not connect|timed out",
    re.IGNORECASE,
)


def program() -> str:
    return uv.find_uv_bin()


def cache() -> Path:
    return Path(settings.ADE_CACHE_DIR)


def writable() -> list[Path]:
    """One place that holds cache and environments, where it is one: from there hard links are made, and no copies."""
    together = environments.root() in cache().parents
    return [environments.root()] if together else [environments.root(), cache()]


def variables() -> dict[str, str]:
    passed = {name: value for name, value in os.environ.items() if _PASSED.fullmatch(name)}
    ours = {"UV_CACHE_DIR": str(cache()), "UV_NO_CONFIG": "1", "UV_NO_PROGRESS": "1", "NO_COLOR": "1"}
    if len(writable()) > 1:
        ours["UV_LINK_MODE"] = "copy"
    # A worker does not fetch interpreters behind the operator's back; who wants that, says so.
    return {"UV_PYTHON_DOWNLOADS": "never", "UV_HTTP_TIMEOUT": "30", **passed, **ours}


def compile_lock(python: str, requirements: Path, lock: Path, *, offline: bool) -> list[str]:
    """Every version pinned, with the hashes of its files."""
    return [
        *(
            program(),
            "pip",
            "compile",
            "--quiet",
            "--generate-hashes",
            "--no-header",
            "--no-annotate",
            "--no-emit-index-url",
        ),
        *("--only-binary", ":all:", "--python", python, "--output-file", str(lock), *_offline(offline)),
        *("--", str(requirements)),
    ]


def make_environment(python: str, home: Path) -> list[str]:
    return [program(), "venv", "--quiet", "--relocatable", "--no-project", "--python", python, "--", str(home)]


def install(home: Path, lock: Path, *, offline: bool) -> list[str]:
    """Wheels only: to build a package is to run its code, with the network at hand."""
    return [
        *(program(), "pip", "sync", "--require-hashes", "--only-binary", ":all:", "--python", str(home)),
        *_offline(offline),
        *("--", str(lock)),
    ]


def lacks_network(said: str) -> bool:
    return _NO_NETWORK.search(said) is not None


def _offline(offline: bool) -> list[str]:
    return ["--offline"] if offline else []
