"""The command line of the child."""

import argparse
import errno
import importlib
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any, NoReturn

from ade_engine.channel import Channel, own_channel
from ade_extractor import READERS, limits
from ade_extractor.pages import Reading, write
from ade_extractor.trouble import Trouble, malformed

LONGEST_MESSAGE = 1000


def main() -> NoReturn:
    channel = own_channel()
    limits.allow_cpu(0)
    failure = _failure(channel, _arguments())
    if failure:
        channel.tell("failed", **failure)
    sys.exit(1 if failure else 0)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="ade_extractor")
    command = parser.add_subparsers(required=True).add_parser("extract")
    command.add_argument("input", type=Path)
    command.add_argument("--type", required=True)
    command.add_argument("--first", type=int, required=True)
    command.add_argument("--last", type=int, required=True)
    command.add_argument("--output", type=Path, required=True)
    return parser.parse_args()


def _failure(channel: Channel, asked: argparse.Namespace) -> dict[str, Any] | None:
    try:
        _extract(channel, asked)
    except Trouble as trouble:
        return _told(trouble.code, str(trouble))
    except MemoryError:
        return _told(
            "too_large", "expected a document that can be read within the memory for it, found a larger one: split it"
        )
    except RecursionError:
        return _told("malformed", "expected a document, found one that is nested too deeply: save it anew")
    except OSError as error:
        traceback.print_exc()
        if error.errno == errno.EFBIG:
            return _told("too_large", "expected text of a size that can be kept, found more: split the document")
        return _told(
            "failed_to_read_or_write",
            f"expected to read the document and to write its text, found {error}",
            permanent=False,
        )
    except Exception as error:
        traceback.print_exc()
        return _told("internal", f"the extractor failed: {type(error).__name__}: {error}", permanent=False)
    return None


def _told(code: str, message: str, *, permanent: bool = True) -> dict[str, Any]:
    return {"permanent": permanent, "code": code, "message": message[:LONGEST_MESSAGE]}


def _extract(channel: Channel, asked: argparse.Namespace) -> None:
    started = time.monotonic()
    reading = _read(asked)

    def tell_page(number: int) -> None:
        channel.tell("progress", page=number, pages_total=reading.pages_total)

    written = write(reading, asked.output, tell_page)
    channel.tell(
        "extracted",
        pages_total=reading.pages_total,
        pages=written.pages,
        characters=written.characters,
        seconds=round(time.monotonic() - started, 3),
    )


def _read(asked: argparse.Namespace) -> Reading:
    if asked.type not in READERS:
        known = ", ".join(sorted(READERS))
        raise Trouble("unsupported", f"expected one of {known}, found {asked.type}: save the document in one of these")
    if os.path.getsize(asked.input) == 0:
        raise malformed("a document", "an empty file", "upload it again")
    reader = importlib.import_module(READERS[asked.type])
    reading: Reading = reader.read(asked.input, asked.type, asked.first, asked.last)
    if not 1 <= asked.first <= min(asked.last, reading.pages_total):
        raise Trouble(
            "no_such_page",
            f"expected pages within 1 to {reading.pages_total}, found {asked.first} to {asked.last} asked for",
        )
    return reading
