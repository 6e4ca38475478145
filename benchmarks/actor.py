"""One process of the benchmark. It executes commands, which arrive as lines of JSON, on the database at DATABASE_URL.

`benchmarks/actors.py` starts it. The process stays warm between measurements, so that no measurement includes its
start.
"""

import json
import os
import sys
import traceback

import django


def main() -> None:
    # Send answers through a copy of stdout, and everything that code prints to stderr, so that the two don't mix.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    django.setup()
    from benchmarks import articles, feeding, listed, lookups, loops, pages, rows, told  # noqa: PLC0415  # imports models, so Django must be set up

    modules = {
        module.__name__.rpartition(".")[2]: module
        for module in (articles, feeding, listed, lookups, loops, pages, rows, told)
    }
    for line in sys.stdin:
        name, options = json.loads(line)
        module, _, function = name.partition(".")
        try:
            value = getattr(modules[module], function)(**options)
            answers.write(json.dumps({"value": value}) + "\n")
        except Exception:
            answers.write(json.dumps({"error": traceback.format_exc()}) + "\n")


if __name__ == "__main__":
    main()
