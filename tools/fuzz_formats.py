"""Hooks for schemathesis: values and limits that it can't derive from the API description."""

import io
import json
import os
import random
import zipfile
from typing import Any
from urllib.parse import urlencode

import schemathesis
from hypothesis import strategies as st

# If the query were longer, gunicorn would refuse the request line before the request reaches the API.
LONGEST_QUERY = 3000
OWN = {str(id) for id in json.loads(os.environ.get("ADE_FUZZ_OWN", "[]"))}
NOBODYS = 9_000_000_000_000


package = io.BytesIO()
with zipfile.ZipFile(package, "w") as archive:
    archive.writestr("main.py", "def main(document):\n    return {}\n")

# Generate only the empty cursor, because any other is valid only if it comes from an earlier page.
schemathesis.openapi.format("cursor", st.just(""))
schemathesis.openapi.media_type("application/zip", st.just(package.getvalue()) | st.binary(max_size=100))


@schemathesis.hook
def filter_query(context: Any, query: Any) -> bool:
    return len(urlencode(query or {}, doseq=True)) < LONGEST_QUERY


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """Send each request from a different address, because requests with unknown tokens are limited per address."""
    address = ".".join(str(random.randrange(1, 255)) for _ in range(3))  # noqa: S311 - no secret
    case.headers = {**(case.headers or {}), "X-Forwarded-For": f"10.{address}"}
    if case.operation.path.endswith("/tokens/{id}/revoke") and str(case.path_parameters.get("id")) in OWN:
        # If the fuzzer revoked its own token, all further requests would be refused.
        case.path_parameters["id"] = NOBODYS
