"""Generates examples for the API description from its schemas. Example values are chosen by field name."""

from typing import Any

NAMED: dict[str, Any] = {
    "id": 17,
    "next": None,
    "name": "invoice.pdf",
    "message": "Run 17 not found. It does not exist, or you do not have access.",
    "email": "olga@example.com",
    "url": "https://example.com/news.xml",
    "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "content_type": "application/pdf",
    "error_message": None,
    "failure_type": None,
    "cancel_requested_at": None,
    "status": "queued",
    "outcome": "queued",
    "actor": "olga",
    "query": "apples",
    "entry_point": "main.py",
}
FORMATS: dict[str, Any] = {
    "date-time": "2026-03-02T08:30:00Z",
    "date": "2026-03-02",
    "uri": "https://example.com/",
    "uuid": "6f1c2f4e-8f0b-4c57-9a0e-3f3f1a2b4c5d",
}
MOST_DEPTH = 8


class Examples:
    def __init__(self, schemas: dict[str, Any]) -> None:
        self.schemas = schemas

    def of(self, schema: dict[str, Any], name: str = "", depth: int = 0) -> Any:
        if "$ref" in schema:
            return self.of(self.schemas[schema["$ref"].rsplit("/", 1)[1]], name, depth)
        for key in ("const", "default"):
            if key in schema:
                return schema[key]
        for key in ("examples", "enum"):
            if key in schema:
                return schema[key][0]
        if any_of := schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf"):
            is_nullable = {"type": "null"} in any_of
            if is_nullable and (depth > MOST_DEPTH or NAMED.get(name, 0) is None):
                return None
            return self.of(next(each for each in any_of if each != {"type": "null"}), name, depth)
        return self._of_type(schema, name, depth)

    def _of_type(self, schema: dict[str, Any], name: str, depth: int) -> Any:
        kind = schema.get("type", "object" if "properties" in schema else None)
        if kind == "object":
            properties = schema.get("properties", {})
            if "not" in schema:
                # Show only required properties here, because the optional ones may exclude each other.
                properties = {key: each for key, each in properties.items() if key in schema.get("required", [])}
            return {key: self.of(each, key, depth + 1) for key, each in properties.items()}
        if kind == "array":
            few = [self.of(schema.get("items", {}), name, depth + 1)] if depth <= MOST_DEPTH else []
            return few * max(len(few), schema.get("minItems", 0))
        if kind in ("integer", "number"):
            usual = 17 if kind == "integer" else 0.5
            return min(max(usual, schema.get("minimum", 0)), schema.get("maximum", 2**63 - 1))
        if kind == "boolean":
            return True
        return _text(schema, name) if kind == "string" else None


def _text(schema: dict[str, Any], name: str) -> str:
    if schema.get("format") in FORMATS:
        return str(FORMATS[schema["format"]])
    if schema.get("format") == "binary":
        return ""
    known = NAMED.get(name)
    text = known if isinstance(known, str) else name.replace("_", " ") or "text"
    longest = schema.get("maxLength", len(text))
    return text[:longest].ljust(schema.get("minLength", 0), "x")
