"""Sends the client's requests one at a time, retries them where that is safe, and reconnects streams."""

import http.client
import io
import json
import os
import random
import ssl
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, TypeVar, cast
from urllib.parse import SplitResult, quote, urlencode, urljoin, urlsplit

READS = frozenset({"GET", "HEAD"})
# The server is busy or restarting, so a request that can safely be repeated is sent again.
AGAIN = frozenset({429, 502, 503, 504})
REDIRECTS = frozenset({301, 302, 303, 307, 308})
MOST_REDIRECTS = 5
# Characters that have a meaning in URLs and so are not quoted in the address of a redirect.
IN_ADDRESSES = "%/?:@!$&'()*+,;=-._~[]"
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0
# Pause before a stream reconnects, until the server has sent another interval.
BETWEEN_STREAMS_SECONDS = 0.1
# Kind of an `Event` that is no real event: its data is the number of milliseconds to wait before reconnecting.
RETRY = "retry"
CHUNK_BYTES = 1 << 16

T = TypeVar("T")
Progress = Callable[[int, int], None]


class Problem(Exception):
    """An error response of the API."""

    def __init__(self, status: int, code: str, message: str, details: Mapping[str, Any], request_id: str) -> None:
        super().__init__(f"{code} ({status}): {message}")
        self.status, self.code, self.message = status, code, message
        self.details, self.request_id = dict(details), request_id


class Unreachable(Exception):
    """The server could not be reached, or the connection broke off."""


@dataclass(frozen=True)
class Event:
    id: str
    kind: str
    data: Any


@dataclass(frozen=True)
class File:
    """A file to upload. It is read from the disk while it is sent."""

    path: str | os.PathLike[str]
    name: str | None = None
    content_type: str = "application/octet-stream"


@dataclass(frozen=True)
class Call:
    """One call of an API operation, with all of its arguments."""

    method: str
    path: str
    query: Mapping[str, Any]
    body: Any = None
    files: Mapping[str, File] | None = None
    headers: Mapping[str, str] | None = None
    # Whether the operation accepts an Idempotency-Key.
    creates: bool = False
    progress: Progress | None = None

    @property
    def target(self) -> str:
        query = {name: _text(value) for name, value in self.query.items() if value is not None}
        return f"{self.path}?{urlencode(query)}" if query else self.path


@dataclass(frozen=True)
class Answer:
    connection: http.client.HTTPConnection
    http: http.client.HTTPResponse

    def whole(self) -> bytes:
        with closing(self):
            return self.http.read()

    def close(self) -> None:
        self.http.close()
        self.connection.close()


class Transport:
    def __init__(
        self,
        address: str,
        token: str,
        *,
        timeout_seconds: float = 60.0,
        attempts: int = 6,
        tls: ssl.SSLContext | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{address!r} is not an address of a server. Use one such as https://ade.example.com.")
        self._parts, self._token, self._tls = parts, token, tls
        self._timeout_seconds, self._attempts, self._sleep = timeout_seconds, attempts, sleep

    def json(self, call: Call) -> Any:
        """Return the decoded response. Raises Problem or Unreachable."""
        return json.loads(self._send_with_retries(call, Answer.whole, self._send))

    def download(self, call: Call, to: BinaryIO) -> int:
        """Copy the response, or the file to which it redirects, to `to`. Return the number of bytes."""
        with closing(self._open(call, self._send_to_storage)) as answer:
            if answer.http.status not in (200, 206):
                raise _problem(answer)
            expected, count = answer.http.headers.get("Content-Length"), 0
            try:
                while chunk := answer.http.read(CHUNK_BYTES):
                    count += to.write(chunk)
            except (OSError, http.client.HTTPException) as error:
                raise Unreachable(f"The connection broke off after {count} bytes.") from error
        if expected is not None and count < int(expected):
            raise Unreachable(f"The connection ended after {count} of {expected} bytes.")
        return count

    def pages(self, call: Call) -> Iterator[Any]:
        """Yield all rows of a list, requesting page after page."""
        cursor = call.query.get("cursor")
        while cursor != "":
            page = self.json(replace(call, query={**call.query, "cursor": cursor}))
            yield from page["items"]
            cursor = page["next"] or ""

    def follow(self, call: Call, after: str = "") -> Iterator[Event]:
        """Yield events as they arrive. If the stream breaks off, reconnect and continue after the last received event.
        The final event has the kind `end`, and its data has the reason.
        """
        failures, interval = 0, BETWEEN_STREAMS_SECONDS
        while True:
            try:
                headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": after} if after else {})
                with closing(self._open(_with_headers(call, headers), self._send)) as answer:
                    for event in events_of(answer.http):
                        after, failures = event.id or after, 0
                        if event.kind == RETRY:
                            interval = min(event.data / 1000, LONGEST_PAUSE_SECONDS)
                        elif event.kind:
                            yield event
                        if event.kind == "end":
                            return
                pause = interval
            except (OSError, http.client.HTTPException):
                failures += 1
                if failures >= self._attempts:
                    raise
                pause = _pause(failures)
            self._sleep(pause)

    def _open(self, call: Call, send: Callable[[Call], Answer]) -> Answer:
        """Return an answer whose body is not read yet."""
        return self._send_with_retries(call, lambda answer: answer, send)

    def _send_with_retries(self, call: Call, read: Callable[[Answer], T], send: Callable[[Call], Answer]) -> T:
        if call.creates:
            # Send the same key in all attempts, so that nothing is created twice if a response is lost.
            call = _with_headers(call, {"Idempotency-Key": str(uuid.uuid4())} | dict(call.headers or {}))
        is_repeatable = call.creates or call.method in READS
        for attempt in range(1, self._attempts + 1):
            try:
                answer = send(call)
                if answer.http.status < 300:
                    return read(answer)
                problem = _problem(answer)
            except (OSError, http.client.HTTPException) as error:
                if attempt == self._attempts or not is_repeatable:
                    raise Unreachable(f"{call.method} {call.path}: {error or type(error).__name__}") from error
                self._sleep(_pause(attempt))
                continue
            # With 429 the server has done nothing, so any request may be sent again.
            is_busy = problem.status == 429 or (is_repeatable and problem.status in AGAIN)
            if not is_busy or attempt == self._attempts:
                raise problem
            self._sleep(_pause(attempt, answer.http.headers.get("Retry-After")))
        raise AssertionError("the last attempt returns or raises")

    def _send(self, call: Call) -> Answer:
        body: Any = None
        headers: dict[str, str] = {}
        if call.files:
            body = Form(call.files, call.body or {}, call.progress)
            headers = {"Content-Type": body.content_type, "Content-Length": str(body.size)}
        elif call.body is not None:
            body = json.dumps(call.body, default=_text).encode()
            headers = {"Content-Type": "application/json"}
        headers |= {"Authorization": f"Bearer {self._token}", "Accept": "*/*"} | dict(call.headers or {})
        return self._request(self._parts, call.method, self._target(call), body, headers)

    def _send_to_storage(self, call: Call) -> Answer:
        """Send the request, and follow redirects to a storage that sends files itself. The storage gets no token,
        because the signed URL is enough.
        """
        headers = {"Accept": "*/*"} | {name: value for name, value in (call.headers or {}).items() if name == "Range"}
        address = f"{self._parts.scheme}://{self._parts.netloc}{self._target(call)}"
        answer = self._send(call)
        for _ in range(MOST_REDIRECTS):
            if answer.http.status not in REDIRECTS:
                return answer
            answer.close()
            address, parts = _redirect_target(address, answer.http.headers.get("Location", ""))
            target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
            answer = self._request(parts, "GET", quote(target, safe=IN_ADDRESSES), None, headers)
        return answer

    def _target(self, call: Call) -> str:
        return self._parts.path.rstrip("/") + call.target

    def _request(self, to: SplitResult, method: str, target: str, body: Any, headers: Mapping[str, str]) -> Answer:
        host, port, timeout = cast(str, to.hostname), to.port, self._timeout_seconds
        if to.scheme == "http":
            connection = http.client.HTTPConnection(host, port, timeout=timeout)
        else:
            connection = http.client.HTTPSConnection(host, port, timeout=timeout, context=self._tls)
        try:
            connection.request(method, target, body, headers)
            return Answer(connection, connection.getresponse())
        except BaseException:
            connection.close()
            raise


def path_of(template: str, **ids: Any) -> str:
    return template.format(**{name: quote(_text(id), safe="") for name, id in ids.items()})


def _redirect_target(address: str, location: str) -> tuple[str, SplitResult]:
    """Return the target of a redirect. Raises Unreachable if the target is not valid, or if a redirect from https does
    not lead to https.
    """
    schemes = ("https",) if address.startswith("https:") else ("http", "https")
    try:
        parts = urlsplit(target := urljoin(address, location))
        # Reading `port` raises ValueError if the port is not valid.
        if location and parts.scheme in schemes and parts.hostname and parts.port != 0:
            return target, parts
    except ValueError:
        pass
    raise Unreachable(
        f"The redirect to {_shown(location)} is refused: only addresses with {' or '.join(schemes)} are followed."
    )


def _shown(location: str) -> str:
    # Leave out the query, which may contain a signature.
    return repr(location.partition("?")[0][:200])


def events_of(lines: Any) -> Iterator[Event]:
    """Parse a stream of server-sent events. An incomplete event at the end is left out. A message that contains only an
    ID becomes an Event without a kind, and one with the time to wait before reconnecting an Event of the kind RETRY.
    """
    id, kind = "", "message"
    data: list[str] = []
    for raw in lines:
        line = raw.decode().rstrip("\r\n")
        if not raw.endswith(b"\n"):
            return
        if not line:
            text = "\n".join(data)
            try:
                value = json.loads(text) if data else None
            except ValueError:
                value = text
            yield Event(id, kind if data else "", value)
            kind, data = "message", []
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            data.append(value)
        elif name == "event":
            kind = value
        elif name == "id":
            id = value
        elif name == "retry" and value.isdecimal():
            yield Event("", RETRY, int(value))


def _with_headers(call: Call, headers: Mapping[str, str]) -> Call:
    return replace(call, headers={**(call.headers or {}), **headers})


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _pause(attempt: int, retry_after: str | None = None) -> float:
    """Return the seconds to wait: the value of Retry-After, or a time that doubles with each attempt. Both have jitter,
    so that clients do not all retry at once.
    """
    chance = random.random() / 2  # noqa: S311 - no secret
    if retry_after is not None and retry_after.isdecimal():
        return min(float(retry_after), LONGEST_PAUSE_SECONDS) + chance
    return float(min(FIRST_PAUSE_SECONDS * 2 ** (attempt - 1), LONGEST_PAUSE_SECONDS)) * (0.5 + chance)


def _problem(answer: Answer) -> Problem:
    status, request_id = answer.http.status, answer.http.headers.get("X-Request-ID", "")
    try:
        data = json.loads(answer.whole())
        return Problem(status, data["code"], data["message"], data["details"], request_id)
    except (ValueError, KeyError, TypeError):
        # The response comes from something else than the API, such as a proxy.
        description = f"{status} {answer.http.reason} from {answer.connection.host}"
        if status in REDIRECTS:
            description += f", which redirects to {_shown(answer.http.headers.get('Location', ''))}"
        return Problem(status, "", f"The response is not from ADE: {description}.", {}, request_id)


class Form:
    """The body of a form with files. It is read in pieces, because a file may be larger than the memory."""

    def __init__(self, files: Mapping[str, File], fields: Mapping[str, Any], progress: Progress | None) -> None:
        self._boundary = f"ade-{uuid.uuid4().hex}"
        self._progress = progress
        self.content_type = f"multipart/form-data; boundary={self._boundary}"
        self._parts: list[bytes | File] = []
        for name, value in fields.items():
            for each in value if isinstance(value, list) else [value]:
                self._parts.append(self._head(name) + b"\r\n" + _text(each).encode() + b"\r\n")
        for name, file in files.items():
            filename = file.name or os.path.basename(file.path)
            head = self._head(name, f'; filename="{_escape(filename)}"')
            self._parts += [head + f"Content-Type: {file.content_type}\r\n\r\n".encode(), file, b"\r\n"]
        self._parts.append(f"--{self._boundary}--\r\n".encode())
        self.size = sum(os.stat(part.path).st_size if isinstance(part, File) else len(part) for part in self._parts)

    def __iter__(self) -> Iterator[bytes]:
        sent = 0
        for part in self._parts:
            with open(part.path, "rb") if isinstance(part, File) else io.BytesIO(part) as file:
                while chunk := file.read(CHUNK_BYTES):
                    yield chunk
                    sent += len(chunk)
                    if self._progress:
                        self._progress(sent, self.size)

    def _head(self, name: str, more: str = "") -> bytes:
        head = f'--{self._boundary}\r\nContent-Disposition: form-data; name="{_escape(name)}"{more}\r\n'
        return head.encode()


def _escape(text: str) -> str:
    # Escape the same characters in the same way as browsers do.
    return text.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
