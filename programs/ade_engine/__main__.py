"""Command line of the engine, called as `python -I -m ade_engine` in a build's environment.

`run` executes the run in the working directory, `check` reports whether the entry point loads, and `serve DESCRIPTOR`
starts a warm engine, which forks a process for each run.
"""

import sys

from ade_engine import runner


def main() -> None:
    match sys.argv[1:]:
        case ["run"]:
            runner.run_here(runner.load)
        case ["check"]:
            runner.check()
        case ["serve", descriptor]:
            # Imported here because a single run does not need it.
            from ade_engine import fork_server  # noqa: PLC0415

            fork_server.serve(int(descriptor))
        case _:
            sys.exit("usage: python -I -m ade_engine run | check | serve DESCRIPTOR")


main()
