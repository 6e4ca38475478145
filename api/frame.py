"""Everything that all API paths share: base schemas, checks before the view, and error responses."""

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
from ninja import NinjaAPI, Schema
from ninja.errors import AuthenticationError, HttpError, ValidationError
from ninja.operation import Operation
from pydantic import BaseModel, ConfigDict

from api import audit, outages, uploads
from api.bodies import StrictParser
from api.callers import READ
from api.errors import CODES, Problem, response_of
from api.openapi import describe
from api.rendering import Renderer

log = structlog.get_logger(__name__)

UNAUTHENTICATED = {"WWW-Authenticate": 'Bearer realm="ADE"'}


class Out(BaseModel):
    """Base of response schemas. Views return dictionaries, so this is not ninja's Schema, which looks up each value
    with Django's resolvers: for a page of 200 rows, that took as long as the rest of the request.
    """

    @classmethod
    def of(cls, row: Any, **values: Any) -> dict[str, Any]:
        """Return all fields of the schema: from `values` if given there, otherwise from the row's attributes."""
        return {name: values[name] if name in values else getattr(row, name) for name in cls.model_fields}


class ProblemOut(Out):
    code: str
    message: str
    details: dict[str, Any]


class In(Schema):
    """Base of request bodies. Refuses unknown fields."""

    model_config = ConfigDict(extra="forbid", strict=True)


# Error statuses that any path may return.
EVERYWHERE = frozenset({400, 401, 403, 404, 405, 413, 415, 429, 500, 503, 507})


def empty_to_null(values: dict[str, Any]) -> dict[str, Any]:
    """Replace "" by None, because text columns store a missing value as ""."""
    return {name: None if value == "" else value for name, value in values.items()}


def responses(success: dict[int, Any], *more: int) -> dict[Any, Any]:
    """Return the response schemas of a path: the given ones for success, and errors for EVERYWHERE and `more`."""
    # Paths that create something accept an Idempotency-Key, and 422 reports its reuse for another request.
    more = (*more, 422) if 201 in success else more
    return success | dict.fromkeys(sorted({*EVERYWHERE, *more} - success.keys()), ProblemOut)


def answer_error(request: HttpRequest, error: Any) -> HttpResponse:
    if isinstance(error, HttpError) and isinstance(error.__cause__, Problem | RequestDataTooBig):
        # ninja wraps errors from our JSON parser in HttpError.
        error = error.__cause__
    match error:
        case Problem():
            problem = error
        case AuthenticationError():
            message = "Authentication required. Send the header Authorization: Bearer with a token, or sign in."
            problem = Problem("not_authenticated", message, headers=UNAUTHENTICATED)
        case ValidationError():
            problem = uploads.problem_of(request, [each["loc"] for each in error.errors]) or _invalid_request(error)
        case HttpError():
            codes = {status: code for code, (status, _) in reversed(CODES.items())}
            problem = Problem(codes.get(error.status_code, "invalid_request"), str(error))
        case Http404():
            message = "Not found. It does not exist, or you do not have access."
            problem = Problem("not_found", str(error) or message)
        case RequestDataTooBig():
            problem = Problem("too_large", "The request body is too large.")
        case SuspiciousOperation() | BadRequest():
            problem = Problem("invalid_request", f"The request is invalid: {error}")
        case MultiPartParserError():
            problem = Problem("invalid_multipart", f"The form is invalid: {error}")
        case OperationalError() | InterfaceError() | OSError() if outage := outages.problem_of(error):
            log.error(f"api.{outage.code}", path=request.path, error=str(error))
            problem = outage
        case _:
            log.exception("api.broken", path=request.path, exc_info=error)
            problem = Problem("internal_error", "Internal error. Look for this request ID in the server log.")
    return response_of(problem)


def _invalid_request(error: ValidationError) -> Problem:
    wrong = []
    for each in error.errors[:20]:
        path = each["loc"]
        # Drop the second part: it is the name of a Python parameter, which means nothing to the caller.
        shown = path[:1] + path[2:] if len(path) > 2 else path
        wrong.append({"where": ".".join(map(str, shown)), "problem": each["msg"], "type": each["type"]})
    first = f"{wrong[0]['where']}: {wrong[0]['problem']}" if wrong else "see the API description"
    return Problem("invalid_request", f"The request is invalid: {first.rstrip('.')}.", {"wrong": wrong})


def add_checks(operation: Operation) -> None:
    """Make an operation do three things before it reads the body: name itself for the audit log, even if authentication
    then fails; write an audit entry if the request is unsafe; and refuse unknown query parameters.
    """
    view: Any = operation.view_func
    name = f"{view.__module__.rpartition('.')[2]}.{view.__name__}"
    models = [model for model in operation.models if model.__ninja_param_source__ == "query"]
    known = {name for model in models for name in getattr(model, "__ninja_flatten_map__", None) or model.model_fields}
    run, read_values = operation.run, operation._get_values

    def run_with_name(request: HttpRequest, **path_params: Any) -> HttpResponseBase:
        audit.set_operation(request, name)
        return run(request, **path_params)

    def read_checked_values(request: HttpRequest, path_params: Any, response: HttpResponse) -> dict[str, Any]:
        audit.begin(request)
        # If unknown parameters were ignored, a misspelt filter would return all rows.
        if unknown := sorted(set(request.GET) - known):
            message = f"Unknown parameter {unknown[0]!r}. Known parameters: {', '.join(sorted(known)) or 'none'}."
            raise Problem("invalid_request", message, {"unknown": unknown})
        return read_values(request, path_params, response)

    operation.run = run_with_name  # type: ignore[method-assign]  # ninja has no hook before authentication
    operation._get_values = read_checked_values  # type: ignore[method-assign, assignment]  # ninja has no hook after authentication


def serve_openly(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Serve a view of the API description without authentication: it contains no data and changes only with ADE's
    version.
    """
    return require_safe(cache_control(no_cache=True)(conditional_page(view)))


class Api(NinjaAPI):
    def __init__(self, **options: Any) -> None:
        super().__init__(auth=READ, parser=StrictParser(), renderer=Renderer(), docs_decorator=serve_openly, **options)
        self._description: dict[str, Any] = {}
        # Http404, HttpError and ValidationError must be listed too, because ninja has its own handlers for them.
        for kind in (Exception, Http404, HttpError, ValidationError):
            self.add_exception_handler(kind, answer_error)

    def operations(self) -> Iterator[tuple[str, Operation]]:
        """Yield each operation with its path as declared, including path converters."""
        for bound in self._get_bound_routers():
            for path, view in bound.path_operations.items():
                for operation in view.operations:
                    yield f"{bound.prefix.rstrip('/')}/{path.lstrip('/')}", operation

    def get_openapi_schema(self, **_: Any) -> Any:
        """Return the description. It is cached, because it takes a second to build and never changes in a process."""
        self._description = self._description or describe(self)
        return self._description

    @property
    def urls(self) -> Any:
        for _, operation in self.operations():
            add_checks(operation)
        return super().urls
