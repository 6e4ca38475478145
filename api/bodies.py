"""Parses request bodies strictly: refuses values that Python's `json` accepts but databases or other JSON parsers can't
handle.
"""

import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, NoReturn, cast

from django.http import HttpRequest
from django.utils.datastructures import MultiValueDict
from ninja.parser import Parser

from api.errors import Problem

MOST_BYTES = 1 << 20
MOST_DEPTH = 32
MOST_DIGITS = 19
JSON = "application/json"
# An unterminated string matches up to the end of the body. Otherwise the search would restart at each quote and take
# quadratic time.
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_AS_BRACKETS = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
# Unpaired surrogates are not characters, and databases do not accept NUL in text.
_NO_TEXT = re.compile("[\0\ud800-\udfff]")


class StrictParser(Parser):
    def parse_body(self, request: HttpRequest) -> dict[str, Any]:
        if request.content_type != JSON:
            raise Problem(
                "unsupported_media_type", f"Unsupported content type {request.content_type or '(none)'}. Use {JSON}."
            )
        body = request.body
        if len(body) > MOST_BYTES:
            raise Problem("too_large", f"The body has {len(body):,} bytes; the limit for JSON is {MOST_BYTES:,} bytes.")
        return cast(dict[str, Any], loads(body))

    def parse_querydict(
        self, data: "MultiValueDict[str, Any]", list_fields: list[str], request: HttpRequest
    ) -> dict[str, Any]:
        for name, values in data.lists():
            if len(values) > 1 and name not in list_fields:
                message = f"The parameter {name} was given {len(values)} times. Give it once."
                raise Problem("invalid_request", message, {"name": name})
            for value in values:
                if isinstance(value, str):
                    _check_characters(value, f"parameter {name}", "invalid_request")
        return super().parse_querydict(data, list_fields, request)


def loads(body: bytes) -> Any:
    """Parse JSON. Raises Problem."""
    try:
        # Only UTF-8 without a byte order mark is accepted: the mark is invalid JSON, and other encodings are not
        # guessed.
        text = body.decode()
        _check_depth(body)
        value = json.loads(
            text, object_pairs_hook=_dict_of, parse_int=_int_of, parse_float=_float_of, parse_constant=_refuse_constant
        )
    except UnicodeDecodeError as error:
        raise Problem("invalid_json", "The body is not JSON in UTF-8.") from error
    except json.JSONDecodeError as error:
        raise Problem("invalid_json", f"The body is not valid JSON: {error.msg} at character {error.pos}.") from error
    # Only escapes can produce NUL or surrogates: JSON allows no raw control characters, and UTF-8 no surrogates.
    if b"\\u" in body:
        _check_text(value, "the body")
    return value


def _check_depth(body: bytes) -> None:
    """Limit the nesting before parsing: a hundred thousand brackets would overflow Python's stack."""
    brackets = _STRING.sub(b"", body).translate(_AS_BRACKETS, _NO_BRACKETS)
    # Each pass removes the innermost level of brackets. Invalid JSON may leave some, but too few levels to do harm.
    for _ in range(MOST_DEPTH):
        if b"[]" not in brackets:
            break
        brackets = brackets.replace(b"[]", b"")
    if b"[]" in brackets or brackets.count(b"[") > MOST_DEPTH:
        raise Problem("invalid_json", f"The JSON is nested too deeply: the limit is {MOST_DEPTH} levels.")


def _dict_of(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        repeated = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise Problem("invalid_json", f"The key {repeated!r} is repeated in the JSON. Each key may occur once.")
    return value


def _check_text(value: Any, where: str) -> None:
    if isinstance(value, str):
        _check_characters(value, where)
    elif isinstance(value, list):
        for each in value:
            _check_text(each, where)
    elif isinstance(value, dict):
        for name, each in value.items():
            _check_characters(name, "a key")
            _check_text(each, f"the value of {name!r}")


def _check_characters(text: str, what: str, code: str = "invalid_json") -> None:
    if _NO_TEXT.search(text):
        raise Problem(code, f"The text in {what} contains NUL or half of a surrogate pair.")


def _int_of(digits: str) -> int:
    if len(digits.lstrip("-")) > MOST_DIGITS:
        raise Problem("invalid_json", f"A number in the JSON has too many digits: the limit is {MOST_DIGITS}.")
    return int(digits)


def _float_of(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise Problem("invalid_json", "A number in the JSON is too large.")
    # In JSON Schema, 5.0 is an integer.
    return int(number) if number.is_integer() and abs(number) < 10**MOST_DIGITS else number


def _refuse_constant(constant: str) -> NoReturn:
    raise Problem("invalid_json", f"{constant} is not a valid number in JSON.")
