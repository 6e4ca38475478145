"""One process of the benchmark: executes commands that arrive as lines of JSON, on the database of its DATABASE_URL.

`benchmarks/actors.py` starts it. It stays warm between measurements, so that no measurement includes a start.
"""

import json
import os
import sys
import traceback

import django


def main() -> None:
    # Nothing that prints may mix its output with the answers.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    django.setup()
    from benchmarks import articles, feeding, listed, lookups, loops, pages, rows, told  # noqa: PLC0415  # imports models, needs the line above

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
