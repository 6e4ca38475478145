"""What is done with every request of the API before anything of it is read."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from ninja.operation import Operation

from api import audit
from api.errors import Problem


def are_made_of(operation: Operation) -> None:
    """In this order: it has a name, even if whoever asks is refused; changes are written down; parameters are known."""
    known, name = _parameters(operation), _name(operation)
    run, read_values = operation.run, operation._get_values

    def named(request: HttpRequest, **path_params: Any) -> HttpResponseBase:
        audit.name(request, name)
        return run(request, **path_params)

    def values(request: HttpRequest, path_params: Any, response: HttpResponse) -> dict[str, Any]:
        audit.begin(request)
        _refuse_unknown(request, known)
        return read_values(request, path_params, response)

    operation.run = named  # type: ignore[method-assign]  # ninja has no other place before it asks who comes
    operation._get_values = values  # type: ignore[method-assign, assignment]  # nor after who asks is known


def _refuse_unknown(request: HttpRequest, known: set[str]) -> None:
    """A filter that is misspelt must not show everything."""
    if unknown := sorted(set(request.GET) - known):
        message = f"expected parameters {', '.join(sorted(known)) or '(none)'}, found {unknown[0]!r}"
        raise Problem("invalid_request", message, {"unknown": unknown})


def _parameters(operation: Operation) -> set[str]:
    models = [model for model in operation.models if model.__ninja_param_source__ == "query"]
    return {name for model in models for name in getattr(model, "__ninja_flatten_map__", None) or model.model_fields}


def _name(operation: Operation) -> str:
    """As `runs.submit`."""
    view: Any = operation.view_func
    return f"{view.__module__.rpartition('.')[2]}.{view.__name__}"
