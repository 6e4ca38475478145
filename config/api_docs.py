"""The page about the API. It shows the OpenAPI description to people, without scripts."""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_safe

from api.errors import CODES
from api.openapi import FORMS
from config.api import api
from console.frame import show

# A part of the OpenAPI description.
Schema = Mapping[str, Any]

BOUNDS = {
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minimum": "from {}",
    "maximum": "to {}",
    "minItems": "at least {}",
    "maxItems": "at most {}",
}
# This bound is not shown, because it comes from the database columns and helps no reader.
HIDDEN_BOUND = 2**63 - 1


@dataclass(frozen=True)
class Value:
    """A parameter of an operation, or a key of its request body."""

    name: str
    where: str
    kind: str
    is_needed: bool
    about: str


@dataclass(frozen=True)
class Operation:
    id: str
    method: str
    path: str
    title: str
    about: str
    # A token needs one of these scopes. Empty if no authentication is required.
    scopes: Sequence[str]
    values: Sequence[Value]
    # The successful answers, each with its status and an example.
    answers: Sequence[tuple[str, str]]
    refusals: Sequence[str]
    call: str


@dataclass(frozen=True)
class Part:
    name: str
    about: str
    operations: Sequence[Operation]


@require_safe
def api_docs(request: HttpRequest) -> HttpResponseBase:
    context = {"parts": _parts(), "codes": [(code, *meaning) for code, meaning in CODES.items()]}
    return show(request, "console/api_docs.html", "The API", context)


@cache
def _parts() -> Sequence[Part]:
    schema = api.get_openapi_schema()
    operations: dict[str, list[Operation]] = {tag["name"]: [] for tag in schema["tags"]}
    for path, methods in schema["paths"].items():
        for method, each in methods.items():
            statuses = each["responses"]
            operation = Operation(
                id=each["operationId"],
                method=method.upper(),
                path=path,
                title=each["summary"],
                about=each.get("description", ""),
                scopes=[scope for way in each.get("security", []) for scope in way.get("token", [])],
                values=list(_values(each, schema["components"])),
                answers=[(status, _example(answer)) for status, answer in statuses.items() if int(status) < 400],
                refusals=[status for status in statuses if int(status) >= 400],
                call=_call(method.upper(), path, each),
            )
            operations[each["tags"][0]].append(operation)
    about = {tag["name"]: tag["description"] for tag in schema["tags"]}
    return [Part(name, about[name], each) for name, each in operations.items() if each]


def _values(operation: Schema, components: Schema) -> Iterator[Value]:
    for reference in operation.get("parameters", []):
        parameter = _resolve(reference, components)
        kind, about = parameter["schema"], parameter.get("description") or parameter["schema"].get("description") or ""
        yield Value(parameter["name"], parameter["in"], _kind(kind), parameter.get("required", False), about)
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        schema, where = _resolve(content["schema"], components), "form" if kind in FORMS else "body"
        for name, each in schema.get("properties", {}).items():
            yield Value(name, where, _kind(each), name in schema.get("required", []), each.get("description") or "")
        if "properties" not in schema:
            yield Value("", where, f"{_kind(schema)} ({kind})", is_needed=True, about=schema.get("description", ""))


def _resolve(schema: Schema, components: Schema) -> Schema:
    if "$ref" not in schema:
        return schema
    *_, group, name = schema["$ref"].split("/")
    resolved: Schema = components[group][name]
    return resolved


def _kind(schema: Schema) -> str:
    """Describe the type that a schema defines."""
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[-1]
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(dict.fromkeys(_kind(each) for each in choices))
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return "one of " + ", ".join(str(each) for each in schema["enum"])
    kind = str(schema.get("type", "anything"))
    if kind == "array":
        kind = f"list of {_kind(schema.get('items', {}))}"
    bounds = [
        text.format(schema[name]) for name, text in BOUNDS.items() if schema.get(name, HIDDEN_BOUND) != HIDDEN_BOUND
    ]
    return ", ".join([schema.get("format", kind), *bounds])


def _example(answer: Schema) -> str:
    for kind, content in answer.get("content", {}).items():
        if "example" in content:
            example = content["example"]
            return example if isinstance(example, str) else json.dumps(example, indent=2, ensure_ascii=False)
        return f"{answer.get('description', '')} ({kind})"
    return str(answer.get("description", ""))


def _call(method: str, path: str, operation: Schema) -> str:
    """Return a curl command that calls the operation."""
    words = ['curl -H "Authorization: Bearer $ADE_TOKEN"']
    words += [f"-X {method}"] if method != "GET" else []
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        if kind in FORMS:
            words += [f"-F {name}=@…" for name in content["schema"].get("required", [])]
        elif "example" in content:
            words += ["--json", shlex.quote(json.dumps(content["example"], ensure_ascii=False))]
    return " ".join([*words, f'"$ADE{path}"'])
