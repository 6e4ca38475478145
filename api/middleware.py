"""Middleware for every request: assigns request IDs, forbids shared caching, gives API errors one common shape."""

import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import structlog
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.cache import patch_vary_headers
from django.utils.log import log_response

from api.errors import is_for_programs, problem_of_status, response_of

HEADER = "X-Request-ID"
_BODY_HEADERS = {"Content-Type", "Content-Length", "Content-Encoding", "Content-Disposition", "ETag"}
# Format of an accepted X-Request-ID. Other characters could inject lines into a log.
_VALID_ID = re.compile(r"[A-Za-z0-9._-]{8,64}")


def assign_request_ids(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Return middleware that adds the request ID to the response and to all log lines of the request."""

    def answer(request: HttpRequest) -> HttpResponseBase:
        with bind_request_id(request.headers.get(HEADER, "")) as id:
            response = get_response(request)
            if is_for_programs(request.path):
                response = _for_programs(request, response)
            else:
                # A response that never loaded the user is the same for everyone, so it may be cached.
                users = (getattr(request, name, None) for name in ("_cached_user", "_acached_user"))
                if any(user is not None and user.is_authenticated for user in users):
                    forbid_shared_caching(response, "Cookie")
            response[HEADER] = id
            if response.status_code >= 400:
                # Log this here: Django would log it only after the request ID is unbound.
                logged: Any = response  # django-stubs accepts no streaming response
                log_response("%s: %s", response.reason_phrase, request.path, response=logged, request=request)
            return response

    return answer


@contextmanager
def bind_request_id(given: str) -> Iterator[str]:
    """Yield the request ID, and add it to all log lines of the block. The ID is `given` if that is valid, otherwise a
    new one.
    """
    id = given if _VALID_ID.fullmatch(given) else uuid.uuid4().hex
    with structlog.contextvars.bound_contextvars(request_id=id):
        yield id


def forbid_shared_caching(response: HttpResponseBase, *by: str) -> None:
    """Forbid shared caching of a response that was made for one user."""
    if "Cache-Control" not in response:
        response["Cache-Control"] = "private, no-store"
    patch_vary_headers(response, by)


def _for_programs(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    if response.status_code >= 400 and response.get("Content-Type", "") != "application/json":
        problem = response_of(problem_of_status(request, response.status_code))
        # Copy all headers that don't describe the body, such as X-Frame-Options or Retry-After.
        for name in response.headers.keys() - _BODY_HEADERS:
            problem.setdefault(name, response[name])
        problem.cookies.update(response.cookies)
        response = problem
    forbid_shared_caching(response, "Authorization", "Cookie")
    return response
