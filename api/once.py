"""Idempotent creation. With the header Idempotency-Key, the response is stored in the transaction that creates the
rows, and a repeated request with the same key gets it again.
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
from work.operations import written
from work.sql.contention import patiently

HEADER, REPLAYED = "Idempotency-Key", "Idempotency-Replayed"
# Printable ASCII, at most 200 characters, without leading or trailing spaces, which would be stripped on the way.
KEY = "^[!-~]([ -~]{0,198}[!-~])?$"
KEPT_HOURS = 24

Made = dict[str, Any]
Keep = Callable[[Made], None]


class _AlreadyKept(Exception):
    """Another request with the same key was faster; this attempt is rolled back."""


def creating(
    request: HttpRequest,
    status: int,
    make: Callable[[], Made],
    body_sha256: str | None = None,
    unkept: Sequence[str] = (),
) -> HttpResponse:
    """Run `make` and store its response in the same transaction.

    Pass `body_sha256` if the body was not read as one piece. The fields in `unkept` are returned only the first time;
    a repeated request gets null for them.
    """

    def attempt(keep: Keep) -> Made:
        def write() -> Made:
            with transaction.atomic():
                made = make()
                keep(made | dict.fromkeys(unkept))
            return made

        return patiently(write)

    if HEADER not in request.headers:
        return _answer(make(), status)
    return committing(request, status, attempt, body_sha256)


def committing(
    request: HttpRequest, status: int, attempt: Callable[[Keep], Made], body_sha256: str | None = None
) -> HttpResponse:
    """Do the same as `creating` for code with its own transaction. `attempt` must call the function that it is given
    within that transaction, before the commit.
    """
    key = request.headers.get(HEADER)
    if key is None:
        return _answer(attempt(lambda made: None), status)
    if not re.fullmatch(KEY, key):
        message = f"The {HEADER} must have 1 to 200 printable ASCII characters, without spaces at the ends."
        raise Problem("invalid_request", message, {"header": HEADER})
    caller, fingerprint = caller_of(request).key, _fingerprint(request, body_sha256)

    def keep(made: Made) -> None:
        try:
            with transaction.atomic():
                KeptAnswer.objects.create(
                    caller=caller, key=key, fingerprint=fingerprint, answered=status, body=text_of(made)
                )
        except IntegrityError as error:
            raise _AlreadyKept from error

    if kept := _find(caller, key):
        return _again(kept, fingerprint)
    try:
        return _answer(attempt(keep), status)
    except Exception:
        # Check again, also if this attempt was refused: the first request with this key may just have taken the last
        # place in the queue.
        if kept := _find(caller, key):
            return _again(kept, fingerprint)
        raise


def _find(caller: str, key: str) -> KeptAnswer | None:
    return KeptAnswer.objects.filter(caller=caller, key=key).first()


def _again(kept: KeptAnswer, fingerprint: str) -> HttpResponse:
    if kept.fingerprint != fingerprint:
        message = f"This {HEADER} was already used for another request. Use a new key."
        raise Problem("idempotency_key_reused", message, {"first_used_at": written.moment(kept.created_at)})
    return HttpResponse(kept.body, "application/json", kept.answered, headers={REPLAYED: "true"})


def _answer(made: Made, status: int) -> HttpResponse:
    return HttpResponse(text_of(made), "application/json", status)


def _fingerprint(request: HttpRequest, body_sha256: str | None) -> str:
    body = body_sha256 or hashlib.sha256(request.body).hexdigest()
    return hashlib.sha256(f"{request.method} {request.get_full_path()} {body}".encode()).hexdigest()
