"""The OpenAPI description, for tests that iterate over all of it."""

import jsonschema_rs

from config.api import api

DESCRIPTION = api.get_openapi_schema()
OPERATIONS = [
    (path, method, told) for path, methods in sorted(DESCRIPTION["paths"].items()) for method, told in methods.items()
]


def validator(schema):
    return jsonschema_rs.Draft202012Validator(schema | {"components": DESCRIPTION["components"]})
