#!/usr/bin/env python3
"""Print the ten longest functions and files. This is only for information: it never fails."""

import ast
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
ELSEWHERE = {".venv", "var", "migrations", "node_modules"}
MOST = 10


def sources() -> list[pathlib.Path]:
    return [path for path in ROOT.rglob("*.py") if not ELSEWHERE & set(path.relative_to(ROOT).parts)]


def functions(path: pathlib.Path) -> list[tuple[int, str]]:
    return [
        (
            (node.end_lineno or node.lineno) - node.lineno + 1,
            f"{path.relative_to(ROOT)}:{node.lineno} {node.name}",
        )
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def print_longest(title: str, lengths: list[tuple[int, str]]) -> None:
    print(f"{title} (lines)")
    for length, name in sorted(lengths, reverse=True)[:MOST]:
        print(f"{length:6}  {name}")


def main() -> None:
    paths = sources()
    print_longest("Longest functions", [each for path in paths for each in functions(path)])
    files = [(len(path.read_text().splitlines()), str(path.relative_to(ROOT))) for path in paths]
    print_longest("\nLongest files", files)


if __name__ == "__main__":
    main()
