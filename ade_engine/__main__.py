"""`python -I -m ade_engine run` in the working directory of a run, `… check` to see whether the entry point loads,
`… serve DESCRIPTOR` to fork a process for each run.
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
            # What keeps processes is not for one that only runs.
            from ade_engine import zygote  # noqa: PLC0415

            zygote.serve(int(descriptor))
        case _:
            sys.exit("usage: python -I -m ade_engine run | check | serve DESCRIPTOR")


main()
