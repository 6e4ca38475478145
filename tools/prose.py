#!/usr/bin/env python3
"""Count the sentences that use a turn of phrase ruled out by `docs/style.md`, and fail if there are too many.

Reads docstrings, comments, strings, Markdown and templates. A marked sentence can be good English, and an unmarked one
bad: the count only shows whether the tree gets worse. `--all` prints every marked sentence.
"""

import argparse
import ast
import io
import pathlib
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The highest allowed share of marked sentences, in percent. Lower it when the tree gets better.
CEILING = 1.0
# Files that are not read, because they contain the turns of phrase themselves.
OWN = {"prose.py", "test_prose.py"}
FEWEST_WORDS = 4
SHOWN = 20

TURNS = {
    "formula 'expected …, found …'": r"\bexpected\b.{1,80}, found\b",
    "'whoever', 'somebody' or 'nobody' for a role": r"\b(?:whoever|somebody|nobody)\b",
    "'tell' for report, record or send": r"\b(?:tell|tells|told)\b",
    "'that of' or 'those that'": r"\bthat of\b|\bthat which\b|\bthose (?:of|that)\b",
    "begins with 'What is'": r"^what (?:is|was|has|does|may|can|comes|they|it|one|people)\b",
    "begins with 'Of'": r"^of ",
    "'anew' or 'in the stead'": r"\b(?:anew|stead)\b",
    "'for so long' or 'at most so'": r"\b(?:so long|for so|at most so)\b",
    "'not for you' or 'do not go together'": r"\b(?:not for you|is for others|go together)\b",
}
MARKED = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in TURNS.items()}
END = re.compile(r"(?<=[.!?:;])\s+(?=[A-Z`\"'])")
TEMPLATE_CODE = re.compile(r"\{%.*?%\}|\{#.*?#\}|<(style|script)\b.*?</\1>", re.DOTALL)
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
PARAGRAPH = re.compile(r"\n\s*\n|\n(?=\s*(?:[*|#-]|\d+\.))")


class Sentence(NamedTuple):
    path: str
    turn: str
    text: str


def sentences(text: str) -> list[str]:
    split = END.split(" ".join(text.split()))
    return [sentence for sentence in split if len(sentence.split()) >= FEWEST_WORDS]


def python(source: str) -> Iterator[str]:
    """Yield docstrings, other strings and blocks of comments."""
    inside = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            inside |= {id(part) for part in ast.walk(node) if part is not node}
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield node.value
    yield from comments(source)


def comments(source: str) -> Iterator[str]:
    block: list[str] = []
    last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            if token.start[0] != last + 1:
                yield " ".join(block)
                block = []
            block.append(token.string.lstrip("# "))
            last = token.start[0]
    yield " ".join(block)


def markdown(source: str) -> Iterator[str]:
    for paragraph in PARAGRAPH.split(FENCED.sub("", source)):
        yield paragraph.strip().lstrip("*|#- ")


def template(source: str) -> Iterator[str]:
    without_values = re.sub(r"\{\{.*?\}\}", "…", TEMPLATE_CODE.sub(" ", source))
    yield from re.split(r"<[^>]+>", without_values)


def settings(source: str) -> Iterator[str]:
    """Yield the comments of an .env file."""
    for block in re.split(r"\n(?!#)", source):
        yield " ".join(line.lstrip("# ") for line in block.splitlines() if line.startswith("#"))


READERS = {".py": python, ".md": markdown, ".html": template, ".txt": template, ".example": settings}


def files() -> list[pathlib.Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    return [path for path in paths if path.suffix in READERS and path.exists() and not OWN & {path.name}]


def turn_in(sentence: str) -> str | None:
    """Return the first turn of phrase in the sentence, if any. One mark per sentence is enough."""
    return next((turn for turn, pattern in MARKED.items() if pattern.search(sentence)), None)


def read(paths: list[pathlib.Path]) -> tuple[int, list[Sentence]]:
    """Return the number of all sentences, and the marked sentences."""
    number, marked = 0, []
    for path in paths:
        name = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name
        for passage in READERS[path.suffix](path.read_text()):
            for sentence in sentences(passage):
                number += 1
                if turn := turn_in(sentence):
                    marked.append(Sentence(name, turn, sentence))
    return number, marked


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=pathlib.Path, help="files to read (default: all files in git)")
    parser.add_argument("--all", action="store_true", help="print every marked sentence")
    options = parser.parse_args(arguments)
    number, marked = read([path.resolve() for path in options.paths] or files())
    share = 100 * len(marked) / max(1, number)
    is_bad = share > CEILING
    for sentence in marked if options.all else marked[:SHOWN] if is_bad else []:
        print(f"{sentence.path}: {sentence.turn}: {sentence.text}")
    for turn, count in Counter(sentence.turn for sentence in marked).most_common():
        print(f"{count:6}  {turn}")
    print(f"{len(marked)} of {number} sentences ({share:.1f} %, ceiling {CEILING} %)")
    return int(is_bad)


if __name__ == "__main__":
    sys.exit(main())
