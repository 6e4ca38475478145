#!/usr/bin/env python3
"""Write ade_client/operations.py from the API description; with --check, only report whether it is up to date."""

import keyword
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import django

BASE = Path(__file__).resolve().parent.parent
TARGET = BASE / "clients" / "python" / "ade_client" / "operations.py"
HEAD = '''"""The operations of the API. Written by tools/make_client.py (`make client`): change the API instead."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO, Literal, NotRequired, TypedDict, cast

from ade_client.transport import Call, Event, File, Progress, Transport, path_of
'''
TYPES = {
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "string": "str",
    "null": "None",
    "object": "dict[str, Any]",
}
JSON, STREAM, FORM = "application/json", "text/event-stream", "multipart/form-data"

Json = dict[str, Any]


def main(arguments: list[str]) -> int:
    sys.path[:0] = [str(BASE), str(TARGET.parent.parent)]
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    from config.api import api  # noqa: PLC0415 - needs Django to be set up

    text = format_source(source_of(api.get_openapi_schema()))
    is_same = TARGET.exists() and TARGET.read_text() == text
    if arguments == ["--check"]:
        print("The client matches the API." if is_same else "The client does not match the API. Run `make client`.")
        return 0 if is_same else 1
    TARGET.write_text(text)
    return 0


def format_source(text: str) -> str:
    ruff = Path(sys.executable).with_name("ruff")
    command = [str(ruff), "format", "--stdin-filename", str(TARGET), "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True, cwd=BASE).stdout


def source_of(description: Json) -> str:
    methods = [
        method_of(path, method, operation, description)
        for path, operations in description["paths"].items()
        for method, operation in operations.items()
    ]
    body = "\n".join(sorted(methods, key=lambda text: text.split("(")[0]))
    return f"{HEAD}\n{''.join(types_of(description, body))}\n\nclass Operations:\n{INIT}{body}"


INIT = """    def __init__(self, transport: Transport) -> None:
        self.transport = transport

"""


def types_of(description: Json, body: str) -> Iterator[str]:
    """Yield the types that the operations use. Pages have no type here, because the client yields their rows."""
    schemas = {class_of(name): schema for name, schema in description["components"]["schemas"].items()}
    types = {name: type_of_schema(name, schema) for name, schema in schemas.items()}
    used: list[str] = []
    texts = [body]
    while texts:
        text = texts.pop()
        for name in types:
            if name not in used and re.search(rf"\b{name}\b", text):
                used.append(name)
                texts.append(types[name].partition("\n")[2])
    return (types[name] for name in sorted(used))


def class_of(name: str) -> str:
    return re.sub(r"\W|_", "", name)


def type_of_schema(name: str, schema: Json) -> str:
    if "properties" not in schema:
        return f"{name} = {type_of(schema)}\n" if schema.get("enum") else f"{name} = dict[str, Any]\n"
    required = schema.get("required", [])
    fields = {
        key: type_of(each) if key in required else f"NotRequired[{type_of(each)}]"
        for key, each in schema["properties"].items()
    }
    if all(key.isidentifier() and not keyword.iskeyword(key) for key in fields):
        lines = "".join(f"    {key}: {type}\n" for key, type in fields.items())
        return f"class {name}(TypedDict):\n{lines or '    pass'}\n\n"
    # Quote the types: this syntax is evaluated on import, when types that are declared further down don't exist yet.
    pairs = "".join(f'    "{key}": "{type}",\n' for key, type in fields.items())
    return f'{name} = TypedDict("{name}", {{\n{pairs}}})\n\n'


def type_of(schema: Json) -> str:
    if "$ref" in schema:
        return class_of(schema["$ref"].rsplit("/", 1)[1])
    if "const" in schema:
        return f"Literal[{schema['const']!r}]"
    if "enum" in schema:
        return f"Literal[{', '.join(map(repr, schema['enum']))}]"
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " | ".join(dict.fromkeys(type_of(each) for each in schema[several]))
    if schema.get("type") == "array":
        return f"list[{type_of(schema.get('items', {}))}]"
    if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"dict[str, {type_of(schema['additionalProperties'])}]"
    return TYPES.get(schema.get("type", ""), "Any")


def method_of(path: str, method: str, operation: Json, description: Json) -> str:
    parameters = [each for each in operation["parameters"] if "$ref" not in each]
    creates = len(parameters) < len(operation["parameters"])
    ids = [each for each in parameters if each["in"] == "path"]
    queries = [each for each in parameters if each["in"] == "query"]
    way, returns = how_it_answers(operation, description)
    takes, gives = what_it_takes(operation)
    arguments = ["self", *(argument(each) for each in ids), *(["to: BinaryIO"] if way == "download" else []), *takes]
    keywords = [argument(each) for each in sorted(queries, key=lambda each: not each["required"])]
    keywords += ["after: str = ''"] if way == "follow" else []
    keywords += ["idempotency_key: str | None = None"] if creates else []
    query = ", ".join(f"{each['name']!r}: {python_name(each['name'])}" for each in queries)
    address = ", ".join([repr(path), *(f"{each['name']}={python_name(each['name'])}" for each in ids)])
    parts = [f"{method.upper()!r}", f"path_of({address})", f"{{{query}}}", *gives]
    parts += ["creates=True"] if creates else []
    headers = ", headers={'Idempotency-Key': idempotency_key} if idempotency_key else None" if creates else ""
    call = f"Call({', '.join(parts)}{headers})"
    signature = ", ".join([*arguments, *(["*", *keywords] if keywords else [])])
    return (
        f"    def {snake(operation['operationId'])}({signature}) -> {returns}:\n"
        f"{docstring(operation)}{ending(way, returns, call)}\n"
    )


def how_it_answers(operation: Json, description: Json) -> tuple[str, str]:
    answers = [answer for status, answer in operation["responses"].items() if status < "300" and "content" in answer]
    content = answers[0]["content"] if answers else {}
    if STREAM in content:
        return "follow", "Iterator[Event]"
    if JSON not in content:
        return "download", "int"
    schema = content[JSON]["schema"]
    page = description["components"]["schemas"].get(schema.get("$ref", "").rsplit("/", 1)[-1], {}).get("properties", {})
    if {"items", "next"} <= set(page):
        return "pages", f"Iterator[{type_of(page['items']['items'])}]"
    return "json", type_of(schema)


def what_it_takes(operation: Json) -> tuple[list[str], list[str]]:
    content = operation.get("requestBody", {}).get("content", {})
    if JSON in content:
        return [f"body: {type_of(content[JSON]['schema'])}"], ["body=body"]
    if FORM not in content:
        return [], []
    schema = content[FORM]["schema"]
    files = [
        name for name, each in schema["properties"].items() if "binary" in str(each) or "octet-stream" in str(each)
    ]
    fields = {name: each for name, each in schema["properties"].items() if name not in files}
    takes = [f"{name}: File" for name in files]
    takes += [f"{name}: {type_of(each)} | None = None" for name, each in fields.items()]
    takes += ["progress: Progress | None = None"]
    pairs = ", ".join(f"{name!r}: {name}" for name in fields)
    body = f"body={{name: value for name, value in {{{pairs}}}.items() if value is not None}}" if fields else "body={}"
    return takes, [body, f"files={{{', '.join(f'{name!r}: {name}' for name in files)}}}", "progress=progress"]


def argument(parameter: Json) -> str:
    name, kind = python_name(parameter["name"]), type_of(parameter["schema"])
    return f"{name}: {kind}" if parameter["required"] else f"{name}: {kind} | None = None"


def python_name(name: str) -> str:
    return f"{name}_" if keyword.iskeyword(name) else name


def snake(name: str) -> str:
    return re.sub("([A-Z])", r"_\1", name).lower()


def docstring(operation: Json) -> str:
    text = str(operation.get("description", "")).strip() or f"{operation['summary']}."
    return f'        """{text.splitlines()[0]}"""\n'


def ending(way: str, returns: str, call: str) -> str:
    if way == "json":
        return f"        return cast({returns!r}, self.transport.json({call}))\n"
    more = {"download": ", to", "follow": ", after", "pages": ""}[way]
    return f"        return self.transport.{way}({call}{more})\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
