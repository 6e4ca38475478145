"""Idempotent creation. If a request has the header Idempotency-Key, its response is stored in the transaction that
creates the rows, and a repeated request with the same key gets the stored response.
"""

import hashlib
import re
from collections.abc import Callable, Sequence
from typing import Any

from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse

from api.callers import caller_of
from api.errors import Problem
from api.models import KeptAnswer
from api.rendering import text_of
from work.operations import encoding
from work.sql.contention import patiently

HEADER, REPLAYED = "Idempotency-Key", "Idempotency-Replayed"
# Printable ASCII, at most 200 characters, without spaces at the ends, which HTTP strips.
KEY = "^[!-~]([ -~]{0,198}[!-~])?$"
KEPT_HOURS = 24

# The content of a response, and the function that stores it.
Data = dict[str, Any]
Keep = Callable[[Data], None]


class _AlreadyKept(Exception):
    """A concurrent request with the same key has stored its response first. Rolls this attempt back."""


def create_once(
    request: HttpRequest,
    status: int,
    make: Callable[[], Data],
    body_sha256: str | None = None,
    unkept: Sequence[str] = (),
) -> HttpResponse:
    """Run `make` and store its response in the same transaction.

    Pass `body_sha256` if the body was not read into memory, as for forms with files. The fields in `unkept` are not
    stored: a repeated request gets null for them.
    """

    def attempt(keep: Keep) -> Data:
        def write() -> Data:
            with transaction.atomic():
                data = make()
                keep(data | dict.fromkeys(unkept))
            return data

        return patiently(write)

    if HEADER not in request.headers:
        return HttpResponse(text_of(make()), "application/json", status)
    return commit_once(request, status, attempt, body_sha256)


def commit_once(
    request: HttpRequest, status: int, attempt: Callable[[Keep], Data], body_sha256: str | None = None
) -> HttpResponse:
    """Do the same as `create_once` for code that opens its own transaction. `attempt` gets a function that stores the
    response, and must call it inside that transaction.
    """
    key = request.headers.get(HEADER)
    if key is None:
        return HttpResponse(text_of(attempt(lambda data: None)), "application/json", status)
    if not re.fullmatch(KEY, key):
        message = f"The {HEADER} must have 1 to 200 printable ASCII characters, without spaces at the ends."
        raise Problem("invalid_request", message, {"header": HEADER})
    caller, body = caller_of(request).key, body_sha256 or hashlib.sha256(request.body).hexdigest()
    fingerprint = hashlib.sha256(f"{request.method} {request.get_full_path()} {body}".encode()).hexdigest()

    def keep(data: Data) -> None:
        try:
            with transaction.atomic():
                KeptAnswer.objects.create(
                    caller=caller, key=key, fingerprint=fingerprint, answered=status, body=text_of(data)
                )
        except IntegrityError as error:
            raise _AlreadyKept from error

    if stored := KeptAnswer.objects.filter(caller=caller, key=key).first():
        return _replay(stored, fingerprint)
    try:
        return HttpResponse(text_of(attempt(keep)), "application/json", status)
    except Exception:
        # Look for a stored response after any error, even a refusal: the first request with this key may just have
        # taken the last place in the queue.
        if stored := KeptAnswer.objects.filter(caller=caller, key=key).first():
            return _replay(stored, fingerprint)
        raise


def _replay(stored: KeptAnswer, fingerprint: str) -> HttpResponse:
    if stored.fingerprint != fingerprint:
        message = f"This {HEADER} was already used for another request. Use a new key."
        raise Problem("idempotency_key_reused", message, {"first_used_at": encoding.moment(stored.created_at)})
    return HttpResponse(stored.body, "application/json", stored.answered, headers={REPLAYED: "true"})
