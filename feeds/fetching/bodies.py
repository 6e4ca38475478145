"""Reads and decompresses response bodies, but never more than wanted, however well a body is compressed."""

import zlib
from collections.abc import Iterable, Iterator
from itertools import chain

from feeds.fetching.outcome import FetchFailed, detail

CODINGS = ("gzip", "deflate")
# Bytes that are decompressed at once.
PIECE_BYTES = 64 << 10
_GZIP = 16 + zlib.MAX_WBITS


def read(pieces: Iterable[bytes], codings: list[str], most_bytes: int) -> bytes:
    compressions = [coding.removeprefix("x-") for coding in codings if coding != "identity"]
    if len(compressions) > 1 or any(each not in CODINGS for each in compressions):
        encoding = detail(", ".join(compressions))
        advice = f"Only uncompressed feeds, or {' or '.join(CODINGS)} applied once, can be read."
        raise FetchFailed("bad_answer", f"The answer has an unsupported encoding ({encoding}). {advice}")
    body = bytearray()
    for piece in _decompress(iter(pieces), compressions[0]) if compressions else pieces:
        body += piece
        if len(body) > most_bytes:
            raise too_large(most_bytes)
    return bytes(body)


def too_large(most_bytes: int) -> FetchFailed:
    return FetchFailed("too_large", f"The feed is larger than the limit of {most_bytes} bytes.")


def _decompress(pieces: Iterator[bytes], coding: str) -> Iterator[bytes]:
    """Decompress the body. Data after the end of the compressed stream is ignored."""
    start = b""
    while len(start) < 2 and (piece := next(pieces, b"")):
        start += piece
    if not start:
        return
    window = _GZIP
    if coding == "deflate":
        # Some servers send deflated data with a zlib header, which is correct, and others without.
        has_header = start[0] & 0x0F == zlib.DEFLATED and int.from_bytes(start[:2], "big") % 31 == 0
        window = zlib.MAX_WBITS if has_header else -zlib.MAX_WBITS
    unpacker = zlib.decompressobj(window)
    for data in chain([start], pieces):
        rest = data
        try:
            while rest and not unpacker.eof:
                yield unpacker.decompress(rest, PIECE_BYTES)
                rest = unpacker.unconsumed_tail
        except zlib.error as error:
            raise FetchFailed("bad_answer", f"The answer is not valid {coding}: {detail(error)}.") from error
        if unpacker.eof:
            return
    raise FetchFailed("bad_answer", f"The answer is cut off: its {coding} data ends too early.")
