"""Builds the API description: ninja's schema, plus everything that all paths have in common."""

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

Json = dict[str, Any]

TAGS = {
    "workspaces": "The tenants. Members of a workspace see what belongs to it.",
    "documents": "Stored files, with the extracted text and fields.",
    "fields": "Values read from documents, with people's corrections.",
    "types": "The types of documents with their fields, and what is wrong with documents.",
    "tables": "Tables of documents: rows under typed columns, with people's corrections.",
    "senders": "Who sends documents, and what was learned from people's corrections of their documents.",
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
SECURITY: Json = {
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
HEADERS: Json = {
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
IDEMPOTENCY_KEY: Json = {
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
    def add_schema_definitions(self, definitions: Json) -> None:
        for name, schema in definitions.items():
            # ninja would silently use one of the two schemas for both.
            if self.schemas.get(name, schema) != schema:
                raise ValueError(f"Two different schemas have the name {name}.")
        super().add_schema_definitions(definitions)


def describe(api: "Api") -> Json:
    description = dict(_Schemas(api, ""))
    schemas = description["components"]["schemas"]
    examples = Examples(schemas)
    operations = [
        (naming.plain(path), method, operation)
        for path, operation in api.operations()
        if operation.include_in_schema
        for method in operation.methods
    ]
    ids = {
        (path, method): naming.camel(each.operation_id) if each.operation_id else naming.id_of(_naming_of(each))
        for path, method, each in operations
    }
    ids_below = {id for (path, _), id in ids.items() if path.startswith("/api/")}
    paths = {path: dict(methods) for path, methods in description["paths"].items()}
    for path, method, operation in operations:
        id = ids[path, method]
        # Operation IDs are unique. If an operation exists both below /api/ and at the root, the one at the root gets a
        # suffix.
        if id in ids_below and not path.startswith("/api/"):
            id += "AtRoot"
        completed = _complete(paths[path][method.lower()], method, operation, examples)
        paths[path][method.lower()] = completed | {"operationId": id}
    description["paths"] = paths
    description["components"] = {
        "schemas": dict(sorted(schemas.items())),
        "responses": {f"Problem{status}": _problem(status) for status in sorted({s for s, _ in CODES.values()})},
        "headers": HEADERS,
        "parameters": {"IdempotencyKey": IDEMPOTENCY_KEY},
        "securitySchemes": SECURITY,
    }
    used = {tag for _, _, operation in operations for tag in operation.tags or []}
    description["tags"] = [{"name": tag, "description": text} for tag, text in TAGS.items() if tag in used]
    description["servers"] = [{"url": "/"}]
    return description


def _complete(data: Json, method: str, operation: Operation, examples: Examples) -> Json:
    """Return ninja's description of an operation with the missing parts added."""
    parameters: list[Json] = []
    for each in data["parameters"]:
        schema = _not_null(each["schema"])
        if each["in"] == "path" and schema.get("type") == "integer":
            schema = schema | {"minimum": 1, "maximum": MOST}
        parameters.append({"required": False} | each | {"schema": schema})
    security: list[dict[str, list[str]]] = []
    for way in operation.auth_callbacks:
        if isinstance(way, ByToken):
            security.append({"token": [way.scope.value]})
        if isinstance(way, BySession):
            security.append({"session": [], "csrf": []} if method in CHANGING else {"session": []})
    responses = {str(status): response for status, response in sorted(data["responses"].items())}
    is_creating = method == "POST" and "422" in responses
    if is_creating:
        parameters.append({"$ref": "#/components/parameters/IdempotencyKey"})
    for status, response in responses.items():
        responses[status] = _response(status, response, examples, is_creating=is_creating)
    data = data | {"parameters": parameters, "responses": responses, "security": security}
    if operation.summary == operation.view_func.__name__.title().replace("_", " "):
        data["summary"] = naming.words_of(_naming_of(operation)).capitalize()
    if body := data.get("requestBody"):
        content = {kind: _form(each) if kind in FORMS else each for kind, each in body["content"].items()}
        data["requestBody"] = body | {"content": _with_examples(content, examples)}
    return data


def _naming_of(operation: Operation) -> naming.Operation:
    names = [getattr(model, "__name__", "") for model in operation.response_models.values()]
    models = [str(getattr(model, "__annotations__", "")) for model in operation.response_models.values()]
    return naming.Operation(
        function=operation.view_func.__name__,
        tag=str((operation.tags or ["thing"])[0]),
        reads=not CHANGING & set(operation.methods),
        lists=any("Page" in text for text in names + models),
    )


def _form(content: Json) -> Json:
    schema: Json = content["schema"]
    properties = {name: _not_null(each) for name, each in schema.get("properties", {}).items()}
    return content | {"schema": schema | ({"properties": properties} if properties else {})}


def _not_null(schema: Json) -> Json:
    """Remove null from the schema: parameters and form fields can be omitted, but not sent as null."""
    others = [each for each in schema.get("anyOf", []) if each != {"type": "null"}]
    if len(others) != 1:
        return schema
    kept = {name: value for name, value in schema.items() if name not in ("anyOf", "default")}
    return {**kept, **others[0]}


def _response(status: str, data: Json, examples: Examples, *, is_creating: bool) -> Json:
    if int(status) >= 400:
        return {"$ref": f"#/components/responses/Problem{status}"}
    names = ["X-Request-ID", "Idempotency-Replayed"] if is_creating else ["X-Request-ID"]
    headers = {name: {"$ref": f"#/components/headers/{name}"} for name in names}
    data = data | {"headers": headers | data.get("headers", {})}
    if "content" not in data:
        return data
    # A file can have any content type: it is sent with the type that was detected on upload.
    content = {"*/*" if kind == "application/octet-stream" else kind: each for kind, each in data["content"].items()}
    return data | {"content": _with_examples(content, examples)}


def _with_examples(content: Json, examples: Examples) -> Json:
    return {
        kind: each | {"example": examples.of(each["schema"])}
        if kind == JSON and not {"example", "examples"} & set(each)
        else each
        for kind, each in content.items()
    }


def _problem(status: int) -> Json:
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
