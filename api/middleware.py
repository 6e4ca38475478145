"""Around every request: its id, and for programs one shape of all that is not a success."""

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

from api.errors import answer_of, is_for_programs, of_request

HEADER = "X-Request-ID"
_OF_THE_BODY = {"Content-Type", "Content-Length", "Content-Encoding", "Content-Disposition", "ETag"}
# As others may have given it on the way here; anything else could be more than one line of a log.
_GIVEN = re.compile(r"[A-Za-z0-9._-]{8,64}")


def requests(get_response: Callable[[HttpRequest], HttpResponseBase]) -> Callable[[HttpRequest], HttpResponseBase]:
    """The id stands in every line that is logged meanwhile, and in the answer."""

    def answer(request: HttpRequest) -> HttpResponseBase:
        with known(request.headers.get(HEADER, "")) as id:
            return _logged(request, _finished(request, get_response(request), id))

    return answer


@contextmanager
def known(given: str) -> Iterator[str]:
    """The id of a request that came with this one, and of all lines that are logged meanwhile."""
    id = given if _GIVEN.fullmatch(given) else uuid.uuid4().hex
    with structlog.contextvars.bound_contextvars(request_id=id):
        yield id


def keep_to_them(response: HttpResponseBase, *by: str) -> None:
    """What one may see, another one may not: nobody in between keeps it."""
    if "Cache-Control" not in response:
        response["Cache-Control"] = "private, no-store"
    patch_vary_headers(response, by)


def _logged(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """As Django does of each refusal that was not logged before, but only when the id is forgotten."""
    if response.status_code >= 400:
        told: Any = response  # django-stubs expects one that is not streamed
        log_response("%s: %s", response.reason_phrase, request.path, response=told, request=request)
    return response


def _finished(request: HttpRequest, response: HttpResponseBase, id: str) -> HttpResponseBase:
    if is_for_programs(request.path):
        response = _for_programs(request, response)
    elif _somebody_is_known(request):
        keep_to_them(response, "Cookie")
    response[HEADER] = id
    return response


def _for_programs(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    if response.status_code >= 400 and response.get("Content-Type", "") != "application/json":
        told = answer_of(of_request(request, response.status_code))
        # What else it says holds for any answer: who may frame it, when to come again.
        for name in response.headers.keys() - _OF_THE_BODY:
            told.setdefault(name, response[name])
        told.cookies.update(response.cookies)
        response = told
    keep_to_them(response, "Authorization", "Cookie")
    return response


def _somebody_is_known(request: HttpRequest) -> bool:
    """Whether the answer was made for somebody in particular; whoever has not been looked up is nobody."""
    known = (getattr(request, name, None) for name in ("_cached_user", "_acached_user"))
    return any(person is not None and person.is_authenticated for person in known)
