from typing import Any, NamedTuple


class Problem(NamedTuple):
    """One fault of a document: a code for programs, the field that it concerns or "", and a sentence."""

    code: str
    field: str
    message: str

    def as_json(self) -> dict[str, Any]:
        return self._asdict()
