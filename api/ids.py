"""Ids in paths: what no database has a number for is no id, and answered as one that is not there."""

from typing import Annotated

from django.urls import register_converter
from pydantic import Field

MOST = 2**63 - 1

# In bodies and parameters; in paths it is `{id:id}`.
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
    """Of what is named by the code: jobs, and briefs by their days."""

    regex = "[A-Za-z0-9_.-]{1,128}"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


register_converter(NameConverter, "name")
