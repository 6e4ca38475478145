#!/usr/bin/env python3
"""Let schemathesis call the whole API of a separate server as an admin, an operator and a viewer. The exit code is 0 if
it finds nothing.

Usage: fuzz_api.py [--minutes N] [--postgres] [--role admin|operator|viewer] [--examples N] [--seed N]

The minutes are per role. When all examples have been tried, new ones are generated from another seed.
"""

import argparse
import contextlib
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

BASE = Path(__file__).resolve().parent.parent
ROLES = ["admin", "operator", "viewer"]
START_SECONDS = 60
# In less time, schemathesis does not even try its first example.
LEAST_SECONDS = 5
# Statuses that the API may return for a request that fits its description. Not all are successes, because the
# description can't express which IDs exist, in what state the rows are, which idempotency keys were used, and what a
# token may do.
MAY_REFUSE = ["2xx", "3xx", "401", "403", "404", "409", "410", "412", "416", "422", "429"]
# These operations may also refuse a request that fits the description with other statuses, for reasons that no schema
# can express: the contents of a file, an address from which ADE must not fetch, a time in the past, or a name that
# consists only of invisible characters.
JUDGED = [
    "/documents",
    "/api/v1/documents",
    "/api/v1/documents/{id}/fields/{name}",
    "/api/v1/configurations",
    "/api/v1/configurations/{id}/package",
    "/api/v1/feeds",
    "/api/v1/feeds/import",
    "/api/v1/tokens",
    "/api/v1/workspaces/{id}/webhooks",
]
CONFIG = f"""
[generation]
allow-x00 = false
codec = "utf-8"

[checks.positive_data_acceptance]
expected-statuses = {json.dumps(MAY_REFUSE)}

[checks.negative_data_rejection]
expected-statuses = ["400", "401", "403", "404", "405", "406", "409", "410", "412", "413", "415", "416", "422", "429"]
""" + "".join(
    f"""
[[operations]]
include-path = "{path}"

[operations.checks.positive_data_acceptance]
expected-statuses = {json.dumps([*MAY_REFUSE, "400", "413", "415"])}
"""
    for path in JUDGED
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--role", choices=ROLES)
    parser.add_argument("--examples", type=int, default=50)
    parser.add_argument("--seed", type=int)
    options = parser.parse_args()
    if options.postgres and "ADE_FUZZ_INSIDE" not in os.environ:
        command = [sys.executable, str(BASE / "tools/with_postgres.py"), sys.executable, *sys.argv]
        return subprocess.run(command, env=os.environ | {"ADE_FUZZ_INSIDE": "1"}).returncode
    roles = [options.role] if options.role else ROLES
    with tempfile.TemporaryDirectory(prefix="ade-fuzz-") as folder:
        environment = environment_of(folder, postgres=options.postgres)
        run(["manage.py", "migrate", "-v0"], environment)
        output = run(["manage.py", "shell", "-v0", "-c", "from tools import fuzz_rows; fuzz_rows.make()"], environment)
        rows = json.loads(output.splitlines()[-1])
        with serve(environment, Path(folder)) as address:
            fuzzer = Fuzzer(address, options, Path(folder), rows["ids"])
            codes = [fuzzer.fuzz(rows["tokens"][role]) for role in roles]
    return max(codes)


def environment_of(folder: str, *, postgres: bool) -> dict[str, str]:
    """Return the environment variables of the server, which has its own data directory and no rate limits."""
    values = {"ADE_VAR_DIR": folder, "ADE_ENV_FILE": os.devnull, "DEBUG": "true", "WEB_CONCURRENCY": "2"}
    # The fuzzer sends more requests than the rate limits allow.
    values |= {"ADE_RATE_READS": "0", "ADE_RATE_WRITES": "0", "ADE_RATE_UPLOADS": "0", "ADE_PROXIES": "127.0.0.0/8"}
    if not postgres:
        values["DATABASE_URL"] = ""
    return os.environ | values


def run(arguments: list[str], environment: dict[str, str]) -> str:
    return subprocess.run(
        [sys.executable, *arguments], env=environment, cwd=BASE, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


@contextlib.contextmanager
def serve(environment: dict[str, str], folder: Path) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "gunicorn", "-c", "python:config.server", "--bind", f"127.0.0.1:{port}"]
    with open(folder / "server.log", "wb") as log:
        server = subprocess.Popen(command, env=environment, cwd=BASE, stderr=log)
    try:
        until_it_answers(address)
        yield address
    finally:
        server.terminate()
        server.wait()
        for line in (folder / "server.log").read_text(errors="replace").splitlines():
            if "api.broken" in line:
                print(line.replace("\\n", "\n"))


def until_it_answers(address: str) -> None:
    give_up_at = time.monotonic() + START_SECONDS
    while True:
        try:
            with urllib.request.urlopen(f"{address}/api/v1/openapi.json"):  # noqa: S310 - our own server
                return
        except OSError:
            if time.monotonic() > give_up_at:
                raise
            time.sleep(0.2)


@dataclass(frozen=True)
class Fuzzer:
    address: str
    options: argparse.Namespace
    folder: Path
    # The IDs of the fuzzer's own tokens, which it must not revoke.
    own: list[int]

    def fuzz(self, token: str) -> int:
        """Run schemathesis repeatedly until the time is over or it finds a failure. Return its last exit code."""
        until, number = time.monotonic() + self.options.minutes * 60, 0
        while (seconds := int(until - time.monotonic())) >= LEAST_SECONDS or number == 0:
            config = self.folder / "schemathesis.toml"
            config.write_text(CONFIG)
            chance = random.randrange(2**32)  # noqa: S311 - no secret
            seed = chance if self.options.seed is None else self.options.seed + number
            command = [
                str(Path(sys.executable).with_name("schemathesis")),
                *("--config-file", str(config), "run", f"{self.address}/api/v1/openapi.json"),
                *("--header", f"Authorization: Bearer {token}", "--checks", "all"),
                *("--max-examples", str(self.options.examples), "--seed", str(seed)),
                # Exclude streams: they last for minutes, and schemathesis reads each response to its end. tests/api
                # covers them.
                *("--exclude-path-regex", "/stream$"),
                *("--max-time", str(max(seconds, 1)), "--continue-on-failure"),
                *("--generation-database", "none", "--no-color"),
            ]
            hooks = {
                "SCHEMATHESIS_HOOKS": "tools.fuzz_formats",
                "PYTHONPATH": str(BASE),
                "ADE_FUZZ_OWN": json.dumps(self.own),
            }
            code = subprocess.run(command, cwd=self.folder, env=os.environ | hooks).returncode
            if code:
                return code
            number += 1
        return 0


if __name__ == "__main__":
    sys.exit(main())
