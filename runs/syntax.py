"""Checks whether Python files can be parsed.

This file is also a program, `python -I syntax.py FILE`, for callers that must survive a crash of the parser. It needs
only the standard library and prints each problem as a line of JSON.
"""

import json
import sys
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path

# The longest message, which may quote the source line.
MOST_CHARACTERS = 500

Problem = tuple[str, str, int | None]


def problems(files: Mapping[str, str]) -> Iterator[Problem]:
    """Yield path, message and line, at most one problem per file."""
    for path, text in sorted(files.items()):
        if not path.endswith(".py"):
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                compile(text, path, "exec", dont_inherit=True)
        except SyntaxError as error:
            yield path, error.msg[:MOST_CHARACTERS], error.lineno
        except (ValueError, MemoryError, RecursionError, OverflowError) as error:
            yield path, f"cannot be compiled: {(str(error) or type(error).__name__)[:MOST_CHARACTERS]}", None


def main(path: str) -> None:
    for problem in problems(json.loads(Path(path).read_bytes())):
        sys.stdout.write(f"{json.dumps(problem)}\n")


if __name__ == "__main__":
    main(sys.argv[1])
