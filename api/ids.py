"""IDs and names in URLs and bodies. A path with an ID too large for the database returns 404."""

from typing import Annotated

from django.urls import register_converter
from pydantic import Field

MOST = 2**63 - 1

# The type of IDs in bodies and query parameters. Paths use `{id:id}`.
Id = Annotated[int, Field(ge=1, le=MOST)]


class IdConverter:
    regex = "[1-9][0-9]{0,18}"

    def to_python(self, value: str) -> int:
        if int(value) > MOST:
            raise ValueError
        return int(value)

    def to_url(self, value: int) -> str:
        return str(value)


register_converter(IdConverter, "id")


class NameConverter:
    """A path converter for names that the code defines, such as job names and the dates that name briefs."""

    regex = "[A-Za-z0-9_.-]{1,128}"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


register_converter(NameConverter, "name")
