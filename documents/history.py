"""Records in the history of a document what people say about it."""

from typing import Any

from documents.lifecycle import DOCUMENT_STATES
from work import clock, lifecycle
from work.lifecycle import Data


def record_correction(document_id: int, message: str, data: Data, *, actor: str) -> bool:
    """Record the correction in the document's history. Return False if there is no such document."""
    values: dict[str, Any] = {"actor": actor, "message": message, "data": data, "touched_at": clock.now()}
    return lifecycle.record(DOCUMENT_STATES, document_id, "FIELD_CORRECTED", **values)


def record_withdrawal(document_id: int, message: str, data: Data, *, actor: str) -> bool:
    values: dict[str, Any] = {"actor": actor, "message": message, "data": data}
    return lifecycle.record(DOCUMENT_STATES, document_id, "FIELD_CORRECTION_WITHDRAWN", **values)


def record_dismissal(document_id: int, message: str, data: Data, *, actor: str) -> bool:
    values: dict[str, Any] = {"actor": actor, "message": message, "data": data, "touched_at": clock.now()}
    return lifecycle.record(DOCUMENT_STATES, document_id, "PROBLEM_DISMISSED", **values)


def choose_type(document_id: int, message: str, data: Data, *, actor: str, **columns: Any) -> bool:
    """Set the columns of the type, and record that in the document's history."""
    values: dict[str, Any] = {"actor": actor, "message": message, "data": data, "touched_at": clock.now(), **columns}
    return lifecycle.record(DOCUMENT_STATES, document_id, "DOCUMENT_TYPE_CHOSEN", **values)


def record_cell(document_id: int, message: str, data: Data, *, actor: str) -> bool:
    """Record the correction of a cell in the document's history."""
    values: dict[str, Any] = {"actor": actor, "message": message, "data": data, "touched_at": clock.now()}
    return lifecycle.record(DOCUMENT_STATES, document_id, "CELL_CORRECTED", **values)


def record_cell_withdrawal(document_id: int, message: str, data: Data, *, actor: str) -> bool:
    values: dict[str, Any] = {"actor": actor, "message": message, "data": data}
    return lifecycle.record(DOCUMENT_STATES, document_id, "CELL_CORRECTION_WITHDRAWN", **values)
