"""The command line of the child process that reads documents."""

import argparse
import errno
import importlib
import json
import os
import sys
import time
import traceback
from pathlib import Path
from typing import NoReturn

from ade_engine.channel import VARIABLE, Channel, own_channel
from ade_extractor import DONE, PROGRESS, READERS, digest, einvoices, limits, ocr, peek
from ade_extractor.pages import Box, Reading, write
from ade_extractor.trouble import Trouble, malformed
from ade_keeper import fork_server

LONGEST_MESSAGE = 1000
# Allowance to combine 25 pages of text and words and to find their tables; most take a tenth of a second.
CPU_SECONDS_PER_SEGMENT = 20


def main() -> NoReturn:
    """Do one piece of work, or with `serve DESCRIPTOR` fork a process for each."""
    arguments = _parse(sys.argv[1:])
    if "descriptor" in arguments:
        fork_server.serve(arguments.descriptor, _import_readers, _become, VARIABLE)
        sys.exit()
    sys.exit(_work(own_channel(), arguments))


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="ade_extractor")
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("extract")
    command.add_argument("input", type=Path)
    command.add_argument("--type", required=True)
    command.add_argument("--first", type=int, required=True)
    command.add_argument("--last", type=int, required=True)
    command.add_argument("--output", type=Path, required=True)
    words_help = "also read the positions of words, even if that takes twice as long"
    command.add_argument("--words", action="store_true", help=words_help)
    command.add_argument("--without-ocr", action="store_true", help="do not recognise text in images")
    command.set_defaults(do=_extract)
    command = commands.add_parser("digest")
    command.add_argument("input", type=Path)
    command.add_argument("--type", required=True)
    command.add_argument("--without-e-invoice", action="store_true", help="do not read the XML of e-invoices")
    command.add_argument("segments", type=Path, nargs="+")
    command.set_defaults(do=_digest)
    for name, function in (("draw", _draw), ("peek", _peek)):
        command = commands.add_parser(name)
        command.add_argument("input", type=Path)
        command.add_argument("--type", required=True)
        command.add_argument("--page", type=int, required=True)
        command.set_defaults(do=function)
    command = commands.add_parser("serve")
    command.add_argument("descriptor", type=int)
    return parser.parse_args(argv)


def _import_readers() -> None:
    for name in sorted(set(READERS.values())):
        importlib.import_module(name)


def _become(_: None) -> NoReturn:
    channel, code = own_channel(), 0
    # The process that this one was forked from has opened sys.stdin already.
    with open(0, "rb", buffering=0, closefd=False) as orders:
        while code == 0 and (order := orders.readline()):
            code = _work(channel, _parse(json.loads(order)))
    sys.stdout.flush()
    # Skip the cleanup of inherited libraries: at exit, pdfium alone takes longer than a page.
    os._exit(code)


def _work(channel: Channel, arguments: argparse.Namespace) -> int:
    limits.begin()
    permanent = True
    try:
        arguments.do(channel, arguments)
    except Trouble as trouble:
        code, message = trouble.code, str(trouble)
    except MemoryError:
        code = "too_large"
        message = "This document is too large: reading it needs more memory than allowed. Split it."
    except RecursionError:
        code, message = "malformed", "This document cannot be read: it is nested too deeply. Save it again."
    except OSError as error:
        traceback.print_exc()
        if error.errno == errno.EFBIG:
            code = "too_large"
            message = "This document is too large: its text exceeds the limit for a file. Split it."
        else:
            code, permanent = "failed_to_read_or_write", False
            message = f"Could not read the document or write its text: {error}"
    except Exception as error:
        traceback.print_exc()
        code, message, permanent = "internal", f"The extractor failed: {type(error).__name__}: {error}", False
    else:
        channel.send(DONE)
        return 0
    channel.send("failed", permanent=permanent, code=code, message=message[:LONGEST_MESSAGE])
    return 1


def _extract(channel: Channel, arguments: argparse.Namespace) -> None:
    started_at = time.monotonic()
    ocr.off = arguments.without_ocr
    reading = _read(arguments, arguments.first, arguments.last)
    # Use a file, because each event would wake the worker.
    with (arguments.output / PROGRESS).open("wb", buffering=0) as file:

        def report_page(number: int) -> None:
            os.pwrite(file.fileno(), b"%d" % number, 0)

        counts = write(reading, arguments.output, report_page, with_words=arguments.words)
    channel.send(
        "extracted",
        soon=True,
        pages_total=reading.pages_total,
        pages=counts.pages,
        characters=counts.characters,
        recognised=counts.recognised,
        scans=counts.scans,
        seconds=round(time.monotonic() - started_at, 3),
    )


def _digest(channel: Channel, arguments: argparse.Namespace) -> None:
    limits.allow_more(len(arguments.segments) * CPU_SECONDS_PER_SEGMENT)

    def look_at(number: int) -> tuple[str, list[Box]]:
        reader = importlib.import_module(READERS[arguments.type])
        reading: Reading = reader.read(arguments.input, arguments.type, number, number)
        for page in reading.pages:
            page.place_words()
            return page.words, page.find_rulings() if page.find_rulings else []
        return "[]", []

    e_invoice = einvoices.Found() if arguments.without_e_invoice else einvoices.find(arguments.input, arguments.type)
    pages, chunks = digest.write(arguments.segments, Path.cwd(), look_at, e_invoice)
    channel.send("digested", soon=True, pages=pages, chunks=chunks)


def _draw(channel: Channel, arguments: argparse.Namespace) -> None:
    # Import it only here, because most pieces of work draw nothing.
    preview = importlib.import_module("ade_extractor.preview")
    width, height = preview.write(arguments.input, arguments.type, arguments.page, Path.cwd())
    channel.send("drawn", soon=True, width=width, height=height)


def _peek(channel: Channel, arguments: argparse.Namespace) -> None:
    ocr.off = True
    peek.write(_read(arguments, arguments.page, arguments.page), arguments.type, Path.cwd())
    channel.send("peeked", soon=True)


def _read(arguments: argparse.Namespace, first: int, last: int) -> Reading:
    if arguments.type not in READERS:
        known = ", ".join(sorted(READERS))
        raise Trouble("unsupported", f"Unknown type {arguments.type}. Save the document as one of: {known}.")
    if os.path.getsize(arguments.input) == 0:
        raise malformed("This document", "the file is empty", "Upload it again.")
    reader = importlib.import_module(READERS[arguments.type])
    reading: Reading = reader.read(arguments.input, arguments.type, first, last)
    if not 1 <= first <= min(last, reading.pages_total):
        message = f"There are no pages {first} to {last}: the document has pages 1 to {reading.pages_total}."
        raise Trouble("no_such_page", message)
    return reading
