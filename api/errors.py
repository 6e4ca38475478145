"""Errors of the API: one shape, `{"code", "message", "details"}`, and stable codes. docs/api.md lists them."""

import re
from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, JsonResponse

# Code -> status and meaning.
CODES: dict[str, tuple[int, str]] = {
    "invalid_request": (400, "A parameter or a value is not one of those that are allowed; `details` name them."),
    "invalid_json": (400, "The body is not JSON as it is taken: UTF-8, no key twice, no NaN, not too deep."),
    "invalid_multipart": (400, "The body is not a form with files as it is taken."),
    "invalid_cursor": (400, "The cursor is not one that this list has given for these filters."),
    "bad_package": (400, "The file is no package of a configuration; `details` have all that is wrong with it."),
    "bad_url": (400, "The URL is not one from which feeds are fetched; `details` say why in a word."),
    "bad_list": (400, "The file is no list of feeds in OPML, or none that is taken."),
    "not_authenticated": (401, "No token, or one that is not known, has expired or was revoked."),
    "forbidden": (403, "Whoever asks may see this but not do it; `details` say which role or scope is missing."),
    "csrf_failed": (403, "A session needs the token against forged requests: X-CSRFToken."),
    "not_found": (404, "There is no such thing, or not for whoever asks."),
    "method_not_allowed": (405, "The path exists, but not with this method; the header Allow lists those it has."),
    "not_acceptable": (406, "What is there is not of a type that was asked for."),
    "conflict": (409, "It is in a state in which this cannot be done; `details` say which."),
    "slot_already_claimed": (
        409,
        "This slot of the job has a run already, or is due; `details` name its job run.",
    ),
    "not_a_slot": (409, "The schedule has no slot there that can be run, or more than are run at once."),
    "already_there": (409, "There is one of this URL already; `details` have its id."),
    "gone": (410, "What it held is gone, by the retention policy or by hand."),
    "precondition_failed": (412, "It has changed since."),
    "too_large": (413, "The body or the file is larger than it may be."),
    "unsupported_media_type": (415, "The body is not of a content type that this path takes."),
    "range_not_satisfiable": (416, "The file has no such range."),
    "idempotency_key_reused": (422, "This Idempotency-Key was used for another request."),
    "rate_limited": (429, "Too many requests; Retry-After says when to come again."),
    "run_queue_full": (429, "The queue has no place for these runs, and none was made; try again later."),
    "internal_error": (500, "A mistake of ADE's own. The request id finds it in the log."),
    "unavailable": (503, "The database or the storage does not answer; try again later."),
    "busy": (503, "All database connections of the web process are in use; try again in a moment."),
    "too_slow": (503, "A query took longer than it may and was cancelled; ask for less."),
    "disk_full": (507, "The disk of the server is full; nothing was changed."),
}


class Problem(Exception):
    def __init__(
        self,
        code: str,
        message: str,
        details: Mapping[str, Any] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code, self.message = code, message
        self.answered = CODES[code][0]
        self.details, self.headers = dict(details or {}), dict(headers or {})


def answer_of(problem: Problem) -> JsonResponse:
    told = {"code": problem.code, "message": problem.message, "details": problem.details}
    return JsonResponse(told, status=problem.answered, headers=problem.headers)


# Two paths of the API are at the root.
_PATHS = re.compile(r"/api(/.*)?|/documents|/configurations/[^/]*/runs", re.DOTALL)


def is_for_programs(path: str) -> bool:
    return bool(_PATHS.fullmatch(path))


def not_found(what: str, id: object) -> Problem:
    """Return a 404, also for rows of other workspaces, so that callers can't probe for IDs."""
    return Problem("not_found", f"expected the id of a {what} of yours, found {id}", {what: id})


def of_request(request: HttpRequest, status: int) -> Problem:
    """Return the problem for an error response of Django or of other code that does not know the API."""
    code, message = next(
        ((code, message) for code, (known, message) in CODES.items() if known == status),
        ("internal_error" if status >= 500 else "invalid_request", "The request cannot be answered."),
    )
    return Problem(code, message, {"method": request.method, "path": request.path})
