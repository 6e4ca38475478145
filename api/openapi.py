"""Builds the API description: ninja's schema, completed with what all paths have in common."""

from collections.abc import Iterator
from http.client import responses as PHRASES
from typing import TYPE_CHECKING, Any

from ninja.openapi.schema import OpenAPISchema
from ninja.operation import Operation

from api import naming
from api.bodies import JSON
from api.callers import BySession, ByToken
from api.errors import CODES
from api.examples import Examples
from api.idempotency import HEADER, KEY
from api.ids import MOST
from api.models import Scope

if TYPE_CHECKING:
    from api.frame import Api

Told = dict[str, Any]

TAGS = {
    "workspaces": "The tenants. Members of a workspace see what belongs to it.",
    "documents": "Stored files, with the extracted text and fields.",
    "fields": "Values read from documents, with people's corrections.",
    "search": "Full-text and semantic search in documents.",
    "configurations": "Rules and code for processing documents, with their requirements.",
    "builds": "Environments of configurations. Each is built once and used by many runs.",
    "runs": "Executions of a configuration for a document.",
    "artifacts": "Files that runs produced.",
    "queue": "The queue of runs: its size, its limit, and whether it is paused.",
    "jobs": "Scheduled jobs, and the result of each slot.",
    "feeds": "The sources of articles.",
    "articles": "Pages listed by feeds.",
    "clusters": "Articles about the same event.",
    "briefs": "Daily summaries of the news.",
    "workers": "The processes that claim and do the work.",
    "health": "Health checks for monitoring.",
    "events": "The history of rows.",
    "streams": "Live events, as server-sent events.",
    "webhooks": "Signed notifications to your addresses when work ends.",
    "me": "The caller, with roles and scopes.",
    "tokens": "Tokens with which programs authenticate.",
    "audit": "The audit log.",
}
SCOPES = "\n".join(f"* `{scope.value}`: {scope.label.partition(': ')[2]}" for scope in Scope)
SECURITY: Told = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": f"A token of one workspace: `Authorization: Bearer ade_…`. Its scopes:\n\n{SCOPES}",
    },
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "sessionid",
        "description": "The session of a signed-in user.",
    },
    "csrf": {
        "type": "apiKey",
        "in": "header",
        "name": "X-CSRFToken",
        "description": "The value of the cookie `csrftoken`. Required with a session for changes.",
    },
}
HEADERS: Told = {
    "X-Request-ID": {
        "description": "The ID of this request, as in the server log: the one that was sent, or a new one.",
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9._-]{8,64}$"},
        "example": "4b1cf66e5d0c4b6f9f7c3a3b5a8e2d10",
    },
    "Retry-After": {
        "description": "Seconds to wait before the next try.",
        "schema": {"type": "integer", "minimum": 0},
        "example": 5,
    },
    "WWW-Authenticate": {
        "description": "How to authenticate.",
        "schema": {"type": "string"},
        "example": 'Bearer realm="ADE"',
    },
    "Allow": {"description": "The methods that this path supports.", "schema": {"type": "string"}, "example": "GET"},
    "Idempotency-Replayed": {
        "description": "`true` if this is the stored response to an earlier request with the same key.",
        "schema": {"type": "string", "const": "true"},
        "example": "true",
    },
    "ETag": {
        "description": "The tag of the current version. Send it as If-None-Match or If-Match.",
        "schema": {"type": "string"},
        "example": '"9f86d081884c7d65"',
    },
}
OF_STATUS = {401: ["WWW-Authenticate"], 405: ["Allow"], 429: ["Retry-After"], 503: ["Retry-After"]}
IDEMPOTENCY_KEY: Told = {
    "in": "header",
    "name": HEADER,
    "required": False,
    "description": (
        "Use a new key for each creation, and the same key to repeat a request: nothing is created twice, and the"
        " first response is returned again."
    ),
    "schema": {"type": "string", "maxLength": 200, "pattern": KEY},
    "example": "5f0c7a52-3d0e-4f6d-9f3e-1a0f6c1b2d3e",
}
FORMS = {"multipart/form-data", "application/x-www-form-urlencoded"}
CHANGING = {"POST", "PUT", "PATCH", "DELETE"}


class _Schemas(OpenAPISchema):
    def add_schema_definitions(self, definitions: Told) -> None:
        for name, schema in definitions.items():
            # ninja would silently use one schema for both.
            if self.schemas.get(name, schema) != schema:
                raise ValueError(f"Two different schemas have the name {name}.")
        super().add_schema_definitions(definitions)


def describe(api: "Api") -> Told:
    found = dict(_Schemas(api, ""))
    schemas = found["components"]["schemas"]
    examples = Examples(schemas)
    found["paths"] = {path: dict(methods) for path, methods in found["paths"].items()}
    names = _ids(api)
    for path, method, operation in _each(api):
        told = found["paths"][path][method.lower()]
        found["paths"][path][method.lower()] = _described(told, method, operation, examples) | {
            "operationId": names[path, method]
        }
    found["components"] = {
        "schemas": dict(sorted(schemas.items())),
        "responses": {f"Problem{status}": _problem(status) for status in sorted({s for s, _ in CODES.values()})},
        "headers": HEADERS,
        "parameters": {"IdempotencyKey": IDEMPOTENCY_KEY},
        "securitySchemes": SECURITY,
    }
    used = {tag for _, _, operation in _each(api) for tag in operation.tags or []}
    found["tags"] = [{"name": tag, "description": text} for tag, text in TAGS.items() if tag in used]
    found["servers"] = [{"url": "/"}]
    return found


def _each(api: "Api") -> Iterator[tuple[str, str, Operation]]:
    for path, operation in api.operations():
        if operation.include_in_schema:
            for method in operation.methods:
                yield naming.plain(path), method, operation


def _ids(api: "Api") -> dict[tuple[str, str], str]:
    """Return the IDs of all operations. An operation that exists under /api/ and at the root gets a suffix at the
    root.
    """
    found = {
        (path, method): naming.camel(o.operation_id) if o.operation_id else naming.id_of(_named(o))
        for path, method, o in _each(api)
    }
    below = {id for (path, _), id in found.items() if path.startswith("/api/")}
    return {
        (path, method): f"{id}AtRoot" if id in below and not path.startswith("/api/") else id
        for (path, method), id in found.items()
    }


def _described(told: Told, method: str, operation: Operation, examples: Examples) -> Told:
    named = _named(operation)
    told = told | {
        "parameters": [_parameter(each) for each in told["parameters"]],
        "responses": {str(status): answer for status, answer in sorted(told["responses"].items())},
        "security": _security(operation, method),
    }
    if operation.summary == operation.view_func.__name__.title().replace("_", " "):
        told["summary"] = naming.words_of(named).capitalize()
    is_creating = method == "POST" and "422" in told["responses"]
    if is_creating:
        told["parameters"].append({"$ref": "#/components/parameters/IdempotencyKey"})
    for status, answer in told["responses"].items():
        told["responses"][status] = _answer(status, answer, examples, is_creating=is_creating)
    if body := told.get("requestBody"):
        content = {kind: _as_a_form(each) if kind in FORMS else each for kind, each in body["content"].items()}
        told["requestBody"] = body | {"content": _with_examples(content, examples)}
    return told


def _named(operation: Operation) -> naming.Operation:
    names = [getattr(model, "__name__", "") for model in operation.response_models.values()]
    models = [str(getattr(model, "__annotations__", "")) for model in operation.response_models.values()]
    return naming.Operation(
        function=operation.view_func.__name__,
        tag=str((operation.tags or ["thing"])[0]),
        reads=not CHANGING & set(operation.methods),
        lists=any("Page" in said for said in names + models),
    )


def _as_a_form(told: Told) -> Told:
    schema: Told = told["schema"]
    properties = {name: _not_null(each) for name, each in schema.get("properties", {}).items()}
    return told | {"schema": schema | ({"properties": properties} if properties else {})}


def _not_null(schema: Told) -> Told:
    """Remove null from the schema: parameters and form fields can be omitted, but can't be null."""
    others = [each for each in schema.get("anyOf", []) if each != {"type": "null"}]
    if len(others) != 1:
        return schema
    kept = {name: value for name, value in schema.items() if name not in ("anyOf", "default")}
    return {**kept, **others[0]}


def _parameter(told: Told) -> Told:
    schema = _not_null(told["schema"])
    if told["in"] == "path" and schema.get("type") == "integer":
        schema = schema | {"minimum": 1, "maximum": MOST}
    return {"required": False} | told | {"schema": schema}


def _security(operation: Operation, method: str) -> list[dict[str, list[str]]]:
    ways: list[dict[str, list[str]]] = []
    for way in operation.auth_callbacks:
        if isinstance(way, ByToken):
            ways.append({"token": [way.scope.value]})
        if isinstance(way, BySession):
            ways.append({"session": [], "csrf": []} if method in CHANGING else {"session": []})
    return ways


def _answer(status: str, told: Told, examples: Examples, *, is_creating: bool) -> Told:
    if int(status) >= 400:
        return {"$ref": f"#/components/responses/Problem{status}"}
    headers = {name: {"$ref": f"#/components/headers/{name}"} for name in ["X-Request-ID"]}
    if is_creating:
        headers["Idempotency-Replayed"] = {"$ref": "#/components/headers/Idempotency-Replayed"}
    told = told | {"headers": headers | told.get("headers", {})}
    if "content" not in told:
        return told
    # Files have the content type that was detected on upload.
    content = {"*/*" if kind == "application/octet-stream" else kind: each for kind, each in told["content"].items()}
    return told | {"content": _with_examples(content, examples)}


def _with_examples(content: Told, examples: Examples) -> Told:
    return {
        kind: told if {"example", "examples"} & set(told) or kind != JSON else _with_example(told, examples)
        for kind, told in content.items()
    }


def _with_example(told: Told, examples: Examples) -> Told:
    return told | {"example": examples.of(told["schema"])}


def _problem(status: int) -> Told:
    codes = {code: meaning for code, (known, meaning) in CODES.items() if known == status}
    headers = ["X-Request-ID", *OF_STATUS.get(status, [])]
    return {
        "description": f"{PHRASES[status]}. " + " ".join(f"`{code}`: {meaning}" for code, meaning in codes.items()),
        "headers": {name: {"$ref": f"#/components/headers/{name}"} for name in headers},
        "content": {
            JSON: {
                "schema": {"$ref": "#/components/schemas/ProblemOut"},
                "examples": {
                    code: {"summary": meaning, "value": {"code": code, "message": meaning, "details": {}}}
                    for code, meaning in codes.items()
                },
            }
        },
    }
