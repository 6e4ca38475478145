"""Reads mails: the headers that people read, the text, and the names and sizes of attachments."""

import email
from collections.abc import Iterator
from contextlib import suppress
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from email.message import Message
from email.policy import compat32
from pathlib import Path
from typing import Any

from ade_extractor import hypertext, limits
from ade_extractor.pages import Reading
from ade_extractor.paging import Flow
from ade_extractor.text import clean, decode
from ade_extractor.trouble import malformed, reading, too_large

WHAT = "This e-mail"
HEADERS = ("From", "To", "Cc", "Date", "Subject")
# Real mails are not nested as deeply; crafted ones cost quadratic time.
MOST_NESTED = 30
MOST_ATTACHMENTS = 1000
LONGEST_HEADER = 4000
LONGEST_NAME = 200


def read(path: Path, content_type: str, first: int, last: int) -> Reading:
    size = path.stat().st_size
    if size > limits.MOST_TEXT_BYTES:
        problem = f"it has {size:,} bytes (limit: {limits.MOST_TEXT_BYTES:,})"
        raise too_large(WHAT, problem, "Save its attachments separately.")
    # Use the old policy: the new one takes quadratic time in the length of a header.
    message = email.message_from_bytes(path.read_bytes(), policy=compat32)
    if not any(message.get(header) for header in HEADERS):
        raise malformed(WHAT, f"it has none of the headers {', '.join(HEADERS)}", "Upload it with its own extension.")
    flow = Flow()
    for header in HEADERS:
        if value := _header(message.get(header)):
            flow.text(f"{header}: {value}\n")
    flow.end_paragraph()
    attachments: list[str] = []
    for part in _parts(message, attachments, 0):
        text = _decode(part)
        if part.get_content_type() == "text/html":
            hypertext.feed(text, flow)
            continue
        for paragraph in text.split("\n\n"):
            flow.text(paragraph)
            flow.end_paragraph()
    if attachments:
        flow.text("\n".join(["Attachments:", *attachments]))
    return flow.reading(first, last)


def _parts(message: Message, attachments: list[str], depth: int) -> Iterator[Message]:
    """Yield the parts to read, and append the others to `attachments`."""
    if depth > MOST_NESTED:
        raise malformed(WHAT, "its parts are nested too deeply", "Upload the inner e-mail.")
    kind = message.get_content_type()
    if kind == "multipart/alternative":
        # Read the plain form, or HTML if that is empty.
        forms = [list(_parts(part, attachments, depth + 1)) for part in _children(message)]
        texts = (
            form
            for wanted in ("text/plain", "text/html")
            for form in forms
            if any(part.get_content_type() == wanted and _decode(part).strip() for part in form)
        )
        yield from next(texts, [])
    elif message.is_multipart() and kind != "message/rfc822":
        for part in _children(message):
            yield from _parts(part, attachments, depth + 1)
    elif kind in ("text/plain", "text/html") and not (
        message.get_content_disposition() == "attachment" or message.get_filename()
    ):
        yield message
    elif len(attachments) >= MOST_ATTACHMENTS:
        raise too_large(WHAT, f"it has more than {MOST_ATTACHMENTS} attachments", "Save them separately.")
    else:
        if kind == "message/rfc822":
            inner = (_children(message) or [Message()])[0]
            name = _header(message.get_filename() or inner.get("Subject")) or "a mail"
            attachments.append(f"{name} (a mail)")
        else:
            name = _header(message.get_filename())[:LONGEST_NAME] or kind
            attachments.append(f"{name} ({len(_bytes(message)):,} bytes)")


def _children(message: Message) -> list[Message]:
    payload = message.get_payload()
    return [part for part in payload if isinstance(part, Message)] if isinstance(payload, list) else []


def _decode(part: Message) -> str:
    charset = part.get_content_charset()
    return decode(_bytes(part), charset if charset != "us-ascii" else None)


def _bytes(part: Message) -> bytes:
    with reading(WHAT):
        payload: Any = part.get_payload(decode=True)
    return payload or b""


def _header(value: Any) -> str:
    if value is None:
        return ""
    raw = str(value)[:LONGEST_HEADER]
    with suppress(HeaderParseError, LookupError, ValueError):
        raw = str(make_header(decode_header(raw)))
    return " ".join(clean(raw).split())
