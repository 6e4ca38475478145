"""Runs the peers' own `run_peers.py` with ADE as another peer. `python -m benchmarks.peers` creates the environment."""

import os
from typing import Any

import run_peers  # type: ignore[import-not-found]  # in the folder that this file is copied to

ROOT, HERE = os.environ["ADE_ROOT"], str(run_peers.HERE)
ADE = {
    "PYTHONPATH": f"{HERE}:{ROOT}",
    "DJANGO_SETTINGS_MODULE": "benchmarks.settings",
    "ADE_ENV_FILE": os.devnull,
    "ADE_VAR_DIR": os.path.join(HERE, "var"),
    "ADE_LOG_LEVEL": "WARNING",
}
run_peers.PEERS["ade"] = ("peer_ade", ADE, True)
run_peers.PEERS["ade-slots"] = ("peer_ade", {**ADE, "BENCH_VARIANT": "slots"}, True)


class NoRedis:
    """Replaces the Redis server, which none of the chosen peers uses."""

    url = version = "none"

    def __init__(self, _directory: str) -> None:
        pass

    def stop(self) -> None:
        pass


class Bench(run_peers.Bench):  # type: ignore[misc]  # as above
    def drain(self, peer: str, c: int, kind: str, *arguments: Any, **options: Any) -> None:
        # ADE can't take part in measurements of kind "proc": its runs have no engine here that could start a process.
        if kind != "proc":
            super().drain(peer, c, kind, *arguments, **options)


run_peers.Redis, run_peers.Bench = NoRedis, Bench
run_peers.main()
