"""What all paths of the API share: authentication, response schemas, and how errors become responses."""

from collections.abc import Callable, Iterator
from typing import Any

import structlog
from django.core.exceptions import BadRequest, RequestDataTooBig, SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from django.http.multipartparser import MultiPartParserError
from django.http.response import HttpResponseBase
from django.views.decorators.cache import cache_control
from django.views.decorators.http import conditional_page, require_safe
from ninja import NinjaAPI, Router, Schema
from ninja.errors import AuthenticationError, HttpError, ValidationError
from ninja.operation import Operation
from pydantic import BaseModel, ConfigDict

from api import checks, uploads
from api.bodies import StrictParser
from api.callers import READ
from api.errors import CODES, Problem, answer_of
from api.openapi import describe
from api.outages import problem_of
from api.rendering import Renderer

log = structlog.get_logger(__name__)

UNAUTHENTICATED = {"WWW-Authenticate": 'Bearer realm="ADE"'}


class Out(BaseModel):
    """Base of responses, which are built from dictionaries. ninja's own Schema looks up each value with Django's
    resolvers; for a page of 200 rows, that took as long as the rest of the request.
    """


class ProblemOut(Out):
    code: str
    message: str
    details: dict[str, Any]


class In(Schema):
    """Base of request bodies. Unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


# Error statuses that any path may return.
EVERYWHERE = frozenset({400, 401, 403, 404, 405, 413, 415, 429, 500, 503, 507})


def answers(success: dict[int, Any], *more: int) -> dict[Any, Any]:
    """Return the response schemas of a path: on success, and for the errors that it has besides the usual ones."""
    # Paths that create something take an Idempotency-Key.
    more = (*more, 422) if 201 in success else more
    return success | dict.fromkeys(sorted({*EVERYWHERE, *more} - success.keys()), ProblemOut)


def _told(request: HttpRequest, problem: Problem) -> HttpResponse:
    return answer_of(problem)


def _not_authenticated(request: HttpRequest, error: AuthenticationError) -> HttpResponse:
    message = "Authentication required. Send the header Authorization: Bearer with a token, or sign in."
    return answer_of(Problem("not_authenticated", message, headers=UNAUTHENTICATED))


def _invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
    if problem := uploads.problem_of(request, [each["loc"] for each in error.errors]):
        return answer_of(problem)
    wrong = [{"where": _where(each["loc"]), "problem": each["msg"], "type": each["type"]} for each in error.errors[:20]]
    first = f"{wrong[0]['where']}: {wrong[0]['problem']}" if wrong else "see the API description"
    return answer_of(Problem("invalid_request", f"The request is invalid: {first.rstrip('.')}.", {"wrong": wrong}))


def _where(path: tuple[Any, ...]) -> str:
    # The second part is the name of one of our arguments, which means nothing to the caller.
    return ".".join(map(str, path[:1] + path[2:] if len(path) > 2 else path))


def _http(request: HttpRequest, error: HttpError) -> HttpResponse:
    # ninja wraps errors of the parser in HttpError.
    if isinstance(error.__cause__, Problem):
        return answer_of(error.__cause__)
    if isinstance(error.__cause__, RequestDataTooBig):
        return _too_big(request, error.__cause__)
    codes = {status: code for code, (status, _) in reversed(CODES.items())}
    return answer_of(Problem(codes.get(error.status_code, "invalid_request"), str(error)))


def _missing(request: HttpRequest, error: Http404) -> HttpResponse:
    return answer_of(Problem("not_found", str(error) or "Not found. It does not exist, or you do not have access."))


def _too_big(request: HttpRequest, error: Exception) -> HttpResponse:
    return answer_of(Problem("too_large", "The request body is too large."))


def _suspicious(request: HttpRequest, error: Exception) -> HttpResponse:
    return answer_of(Problem("invalid_request", f"The request is invalid: {error}"))


def _multipart(request: HttpRequest, error: Exception) -> HttpResponse:
    return answer_of(Problem("invalid_multipart", f"The form is invalid: {error}"))


def _outage(request: HttpRequest, error: Exception) -> HttpResponse:
    problem = problem_of(error)
    if problem is None:
        return _broken(request, error)
    log.error(f"api.{problem.code}", path=request.path, error=str(error))
    return answer_of(problem)


def _broken(request: HttpRequest, error: Exception) -> HttpResponse:
    log.exception("api.broken", path=request.path, exc_info=error)
    return answer_of(Problem("internal_error", "Internal error. Look for this request ID in the server log."))


HANDLERS: dict[type[Exception], Callable[[HttpRequest, Any], HttpResponse]] = {
    Problem: _told,
    AuthenticationError: _not_authenticated,
    ValidationError: _invalid,
    HttpError: _http,
    Http404: _missing,
    RequestDataTooBig: _too_big,
    SuspiciousOperation: _suspicious,
    BadRequest: _suspicious,
    MultiPartParserError: _multipart,
    OperationalError: _outage,
    InterfaceError: _outage,
    OSError: _outage,
    Exception: _broken,
}


def _open_to_all(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Serve the API description without authentication: it contains no data, and only changes with the version of
    ADE.
    """
    return require_safe(cache_control(no_cache=True)(conditional_page(view)))


class Api(NinjaAPI):
    def __init__(self, **options: Any) -> None:
        super().__init__(auth=READ, parser=StrictParser(), renderer=Renderer(), docs_decorator=_open_to_all, **options)
        self._description: dict[str, Any] = {}
        for kind, handler in HANDLERS.items():
            self.add_exception_handler(kind, handler)

    def operations(self) -> Iterator[tuple[str, Operation]]:
        """Yield all operations, each with its path as declared."""
        for bound in self._get_bound_routers():
            for path, view in bound.path_operations.items():
                for operation in view.operations:
                    yield f"{bound.prefix.rstrip('/')}/{path.lstrip('/')}", operation

    def get_openapi_schema(self, **_: Any) -> Any:
        """Cache the description: it takes a second to build and never changes."""
        self._description = self._description or describe(self)
        return self._description

    @property
    def urls(self) -> Any:
        for _, operation in self.operations():
            checks.are_made_of(operation)
        return super().urls


def routes(tag: str) -> Router:
    return Router(tags=[tag])


Answer = HttpResponseBase
