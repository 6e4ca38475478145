"""The command line of the child process that reads documents."""

import argparse
import errno
import importlib
import json
import os
import sys
import time
import traceback
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from ade_engine.channel import VARIABLE, Channel, own_channel
from ade_extractor import DONE, PROGRESS, READERS, digest, limits, ocr, peek
from ade_extractor.pages import Reading, write
from ade_extractor.trouble import Trouble, malformed
from ade_keeper import fork_server

LONGEST_MESSAGE = 1000
# Allowance to combine 25 pages of text and words; most take some milliseconds.
CPU_SECONDS_PER_SEGMENT = 5


def main() -> NoReturn:
    """Do one piece of work, or with `serve DESCRIPTOR` fork a process for each."""
    asked = _arguments(sys.argv[1:])
    if asked.do is _serve:
        sys.exit(_serve(asked.descriptor))
    sys.exit(_work(own_channel(), asked))


def _arguments(given: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="ade_extractor")
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("extract")
    command.add_argument("input", type=Path)
    command.add_argument("--type", required=True)
    command.add_argument("--first", type=int, required=True)
    command.add_argument("--last", type=int, required=True)
    command.add_argument("--output", type=Path, required=True)
    command.add_argument(
        "--words", action="store_true", help="also read the positions of words, even if that takes twice as long"
    )
    command.add_argument("--without-ocr", action="store_true", help="do not recognise text in images")
    command.set_defaults(do=_extract)
    command = commands.add_parser("digest")
    command.add_argument("input", type=Path)
    command.add_argument("--type", required=True)
    command.add_argument("segments", type=Path, nargs="+")
    command.set_defaults(do=_digest)
    command = commands.add_parser("draw")
    command.add_argument("input", type=Path)
    command.add_argument("--type", required=True)
    command.add_argument("--page", type=int, required=True)
    command.set_defaults(do=_draw)
    command = commands.add_parser("peek")
    command.add_argument("input", type=Path)
    command.add_argument("--type", required=True)
    command.add_argument("--page", type=int, required=True)
    command.set_defaults(do=_peek)
    command = commands.add_parser("serve")
    command.add_argument("descriptor", type=int)
    command.set_defaults(do=_serve)
    return parser.parse_args(given)


def _serve(descriptor: int) -> None:
    fork_server.serve(descriptor, _import_readers, _become, VARIABLE)


def _import_readers() -> None:
    for name in sorted(set(READERS.values())):
        importlib.import_module(name)


def _become(_: None) -> NoReturn:
    channel, code = own_channel(), 0
    # The process that this one was forked from has opened sys.stdin already.
    with open(0, "rb", buffering=0, closefd=False) as orders:
        while code == 0 and (order := orders.readline()):
            code = _work(channel, _arguments(json.loads(order)))
    sys.stdout.flush()
    # Skip the cleanup of inherited libraries: at exit, pdfium alone takes longer than a page.
    os._exit(code)


def _work(channel: Channel, asked: argparse.Namespace) -> int:
    limits.begin()
    failure = _failure(channel, asked)
    if failure:
        channel.send("failed", **failure)
    else:
        channel.send(DONE)
    return 1 if failure else 0


def _failure(channel: Channel, asked: argparse.Namespace) -> dict[str, Any] | None:
    try:
        asked.do(channel, asked)
    except Trouble as trouble:
        return _told(trouble.code, str(trouble))
    except MemoryError:
        return _told("too_large", "This document is too large: reading it needs more memory than allowed. Split it.")
    except RecursionError:
        return _told("malformed", "This document cannot be read: it is nested too deeply. Save it again.")
    except OSError as error:
        traceback.print_exc()
        if error.errno == errno.EFBIG:
            return _told("too_large", "This document is too large: its text exceeds the limit for a file. Split it.")
        return _told(
            "failed_to_read_or_write",
            f"Could not read the document or write its text: {error}",
            permanent=False,
        )
    except Exception as error:
        traceback.print_exc()
        return _told("internal", f"The extractor failed: {type(error).__name__}: {error}", permanent=False)
    return None


def _told(code: str, message: str, *, permanent: bool = True) -> dict[str, Any]:
    return {"permanent": permanent, "code": code, "message": message[:LONGEST_MESSAGE]}


def _extract(channel: Channel, asked: argparse.Namespace) -> None:
    started = time.monotonic()
    ocr.off = asked.without_ocr
    reading = _read(asked, asked.first, asked.last)

    # Use a file, because each event would wake the worker.
    with (asked.output / PROGRESS).open("wb", buffering=0) as progress:

        def tell(number: int) -> None:
            os.pwrite(progress.fileno(), b"%d" % number, 0)

        written = write(reading, asked.output, tell, with_words=asked.words)
    channel.send(
        "extracted",
        soon=True,
        pages_total=reading.pages_total,
        pages=written.pages,
        characters=written.characters,
        recognised=written.recognised,
        scans=written.scans,
        seconds=round(time.monotonic() - started, 3),
    )


def _digest(channel: Channel, asked: argparse.Namespace) -> None:
    limits.allow_more(len(asked.segments) * CPU_SECONDS_PER_SEGMENT)
    digested = digest.write(asked.segments, Path.cwd(), partial(_words, asked))
    channel.send("digested", soon=True, pages=digested.pages, chunks=digested.chunks)


def _draw(channel: Channel, asked: argparse.Namespace) -> None:
    # Import it only here, because most pieces of work draw nothing.
    preview = importlib.import_module("ade_extractor.preview")
    width, height = preview.write(asked.input, asked.type, asked.page, Path.cwd())
    channel.send("drawn", soon=True, width=width, height=height)


def _peek(channel: Channel, asked: argparse.Namespace) -> None:
    ocr.off = True
    peek.write(_read(asked, asked.page, asked.page), asked.type, Path.cwd())
    channel.send("peeked", soon=True)


def _words(asked: argparse.Namespace, number: int) -> str:
    """Return the words of one page with their places."""
    reader = importlib.import_module(READERS[asked.type])
    reading: Reading = reader.read(asked.input, asked.type, number, number)
    for page in reading.pages:
        page.place_words()
        return page.words
    return "[]"


def _read(asked: argparse.Namespace, first: int, last: int) -> Reading:
    if asked.type not in READERS:
        known = ", ".join(sorted(READERS))
        raise Trouble("unsupported", f"Unknown type {asked.type}. Save the document as one of: {known}.")
    if os.path.getsize(asked.input) == 0:
        raise malformed("This document", "the file is empty", "Upload it again.")
    reader = importlib.import_module(READERS[asked.type])
    reading: Reading = reader.read(asked.input, asked.type, first, last)
    if not 1 <= first <= min(last, reading.pages_total):
        raise Trouble(
            "no_such_page",
            f"There are no pages {first} to {last}: the document has pages 1 to {reading.pages_total}.",
        )
    return reading
