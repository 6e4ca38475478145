"""The warm engine: a process that has imported a configuration and forks a fresh process for each run."""

from typing import NoReturn

from ade_engine import runner
from ade_engine.channel import VARIABLE
from ade_engine.steps import Step
from ade_keeper import fork_server


def serve(descriptor: int) -> None:
    fork_server.serve(descriptor, runner.load, _run, VARIABLE)


def _run(steps: list[Step]) -> NoReturn:
    runner.reset_after_fork()
    runner.run_here(lambda: steps)
