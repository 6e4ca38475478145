"""The page about the API: its OpenAPI description for people, without scripts."""

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

Told = Mapping[str, Any]

BOUNDS = {
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minimum": "from {}",
    "maximum": "to {}",
    "minItems": "at least {}",
    "maxItems": "at most {}",
}
# Bounds of database columns, which are not worth showing.
UNSAID = 2**63 - 1


@dataclass(frozen=True)
class Value:
    """A parameter, or a key of a body."""

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
    # The scopes of which a token needs one. Empty if no authentication is required.
    scopes: Sequence[str]
    values: Sequence[Value]
    # The successful answers: the status, and an example.
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
    context = {"parts": _parts(), "codes": [(code, *told) for code, told in CODES.items()]}
    return show(request, "console/api_docs.html", "The API", context)


@cache
def _parts() -> Sequence[Part]:
    told = api.get_openapi_schema()
    found: dict[str, list[Operation]] = {tag["name"]: [] for tag in told["tags"]}
    for path, methods in told["paths"].items():
        for method, each in methods.items():
            found[each["tags"][0]].append(_operation(method.upper(), path, each, told["components"]))
    about = {tag["name"]: tag["description"] for tag in told["tags"]}
    return [Part(name, about[name], operations) for name, operations in found.items() if operations]


def _operation(method: str, path: str, told: Told, components: Told) -> Operation:
    statuses = told["responses"]
    return Operation(
        id=told["operationId"],
        method=method,
        path=path,
        title=told["summary"],
        about=told.get("description", ""),
        scopes=[scope for way in told.get("security", []) for scope in way.get("token", [])],
        values=[*_parameters(told, components), *_body(told, components)],
        answers=[(status, _look(each)) for status, each in statuses.items() if int(status) < 400],
        refusals=[status for status in statuses if int(status) >= 400],
        call=_call(method, path, told),
    )


def _parameters(told: Told, components: Told) -> Iterator[Value]:
    for each in told.get("parameters", []):
        found = _resolved(each, components)
        yield _value(found["name"], found["in"], found["schema"], found.get("required", False), found)


def _body(told: Told, components: Told) -> Iterator[Value]:
    for kind, content in told.get("requestBody", {}).get("content", {}).items():
        schema, where = _resolved(content["schema"], components), "form" if kind in FORMS else "body"
        for name, each in schema.get("properties", {}).items():
            yield _value(name, where, each, name in schema.get("required", []), each)
        if "properties" not in schema:
            yield Value("", where, f"{_kind(schema)} ({kind})", is_needed=True, about=schema.get("description", ""))


def _value(name: str, where: str, schema: Told, is_needed: bool, told: Told) -> Value:
    about = told.get("description") or schema.get("description") or ""
    return Value(name, where, _kind(schema), is_needed, about)


def _resolved(told: Told, components: Told) -> Told:
    if "$ref" not in told:
        return told
    *_, group, name = told["$ref"].split("/")
    found: Told = components[group][name]
    return found


def _kind(schema: Told) -> str:
    """Describe the type in words."""
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
    bounds = [said.format(schema[name]) for name, said in BOUNDS.items() if schema.get(name, UNSAID) != UNSAID]
    return ", ".join([schema.get("format", kind), *bounds])


def _look(told: Told) -> str:
    for kind, content in told.get("content", {}).items():
        if "example" in content:
            example = content["example"]
            return example if isinstance(example, str) else json.dumps(example, indent=2, ensure_ascii=False)
        return f"{told.get('description', '')} ({kind})"
    return str(told.get("description", ""))


def _call(method: str, path: str, told: Told) -> str:
    """Return a curl command that calls the operation."""
    words = ['curl -H "Authorization: Bearer $ADE_TOKEN"']
    words += [f"-X {method}"] if method != "GET" else []
    for kind, content in told.get("requestBody", {}).get("content", {}).items():
        if kind in FORMS:
            words += [f"-F {name}=@…" for name in content["schema"].get("required", [])]
        elif "example" in content:
            words += ["--json", shlex.quote(json.dumps(content["example"], ensure_ascii=False))]
    return " ".join([*words, f'"$ADE{path}"'])
