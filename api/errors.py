"""Errors of the API. All have the shape `{"code", "message", "details"}` and a stable code: docs/reference/api.md."""

import re
from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, JsonResponse

# The HTTP status and the meaning of each code.
CODES: dict[str, tuple[int, str]] = {
    "invalid_request": (400, "A parameter or value is not allowed; `details` names it."),
    "invalid_json": (
        400,
        "The body is not JSON that ADE accepts: UTF-8, no repeated keys, no NaN, not nested too deeply.",
    ),
    "invalid_multipart": (400, "The body is not a valid form with files."),
    "invalid_cursor": (400, "The cursor does not belong to this list with these filters."),
    "bad_package": (400, "The file is not a valid configuration package; `details` lists all problems."),
    "bad_url": (400, "Feeds cannot be fetched from this URL; `details` has the reason as a code."),
    "bad_list": (400, "The file is not a list of feeds in OPML, or not one that ADE accepts."),
    "not_authenticated": (401, "The token is missing, unknown, expired or revoked."),
    "forbidden": (403, "You may see this but not do it; `details` names the missing role or scope."),
    "csrf_failed": (403, "A request with a session needs a valid CSRF token in the header X-CSRFToken."),
    "not_found": (404, "It does not exist, or you do not have access."),
    "method_not_allowed": (
        405,
        "The path does not support this method; the header Allow lists the methods that it supports.",
    ),
    "not_acceptable": (406, "The content is not available in a type that the request accepts."),
    "conflict": (409, "The current state does not allow this; `details` has the state."),
    "slot_already_claimed": (
        409,
        "This slot of the job already has a run, or is due; `details` names the job run.",
    ),
    "not_a_slot": (
        409,
        "The schedule has no slot at this time that can be run, or too many slots were requested at once.",
    ),
    "already_there": (409, "This URL was already added; `details` has the ID."),
    "gone": (410, "The content was deleted, by the retention policy or by a person."),
    "precondition_failed": (412, "It has changed since you read it."),
    "too_large": (413, "The body or the file is too large."),
    "unsupported_media_type": (415, "This path does not accept the content type of the body."),
    "range_not_satisfiable": (416, "The range is not in the file."),
    "idempotency_key_reused": (422, "This Idempotency-Key was already used for another request."),
    "rate_limited": (429, "Too many requests; try again after the seconds in Retry-After."),
    "run_queue_full": (429, "The queue has no room for these runs, so none was created; try again later."),
    "internal_error": (500, "Internal error. Look for the request ID in the server log."),
    "unavailable": (503, "The database or the storage is unavailable; try again later."),
    "busy": (503, "All database connections of the web process are in use; try again in a moment."),
    "too_slow": (503, "A query took too long and was cancelled; request less."),
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


def response_of(problem: Problem) -> JsonResponse:
    data = {"code": problem.code, "message": problem.message, "details": problem.details}
    return JsonResponse(data, status=problem.answered, headers=problem.headers)


# Two paths of the API are not below /api/.
_PATHS = re.compile(r"/api(/.*)?|/documents|/configurations/[^/]*/runs", re.DOTALL)


def is_for_programs(path: str) -> bool:
    return bool(_PATHS.fullmatch(path))


def not_found(what: str, id: object) -> Problem:
    """Return the 404 for a missing row. Rows of other workspaces get the same response, so that callers can't probe for
    IDs.
    """
    name = what.replace("_", " ").capitalize()
    message = f"{name} {id} not found. It does not exist, or you do not have access."
    return Problem("not_found", message, {what: id})


def problem_of_status(request: HttpRequest, status: int) -> Problem:
    """Return the problem that replaces an error response from Django or other code that does not use Problem."""
    code, message = next(
        ((code, message) for code, (known, message) in CODES.items() if known == status),
        ("internal_error" if status >= 500 else "invalid_request", "The request cannot be answered."),
    )
    return Problem(code, message, {"method": request.method, "path": request.path})
