"""Checks that wrap every operation of the API, before its body is read."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from ninja.operation import Operation

from api import audit
from api.errors import Problem


def are_made_of(operation: Operation) -> None:
    """Wrap an operation. First it gets its name for the audit log, even if authentication fails; then unsafe requests
    write an audit entry; then unknown query parameters are refused.
    """
    known, name = _parameters(operation), _name(operation)
    run, read_values = operation.run, operation._get_values

    def named(request: HttpRequest, **path_params: Any) -> HttpResponseBase:
        audit.name(request, name)
        return run(request, **path_params)

    def values(request: HttpRequest, path_params: Any, response: HttpResponse) -> dict[str, Any]:
        audit.begin(request)
        _refuse_unknown(request, known)
        return read_values(request, path_params, response)

    operation.run = named  # type: ignore[method-assign]  # ninja has no other hook before authentication
    operation._get_values = values  # type: ignore[method-assign, assignment]  # nor one after authentication


def _refuse_unknown(request: HttpRequest, known: set[str]) -> None:
    """Refuse unknown parameters: a misspelt filter must not return all rows."""
    if unknown := sorted(set(request.GET) - known):
        message = f"Unknown parameter {unknown[0]!r}. Known parameters: {', '.join(sorted(known)) or 'none'}."
        raise Problem("invalid_request", message, {"unknown": unknown})


def _parameters(operation: Operation) -> set[str]:
    models = [model for model in operation.models if model.__ninja_param_source__ == "query"]
    return {name for model in models for name in getattr(model, "__ninja_flatten_map__", None) or model.model_fields}


def _name(operation: Operation) -> str:
    """Return a name such as `runs.submit_run`."""
    view: Any = operation.view_func
    return f"{view.__module__.rpartition('.')[2]}.{view.__name__}"
