"""Publishes the findings of a run as fields of its document: see docs/decisions/0036-one-value-with-many-sources.md."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ade_understanding.vocabulary import FIELDS
from documents import fields as document_fields
from documents.models import DocumentField
from runs.models import Run
from work.claims import Claim

# A word before the number of the run, as `documents/choosing.py` expects it.
SOURCE = "run"


def findings(fields: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return those fields of a run that can be fields of a document: texts and numbers with a visible name.

    A place that is not within the page is left out. The sandbox limits what a configuration does, not what it reports.
    """
    found = []
    for field in fields:
        name, value = document_fields.clean_name(str(field["name"])), field["value"]
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        text = document_fields.clean_value(value) if isinstance(value, str) else str(value) if is_number else ""
        if name and text:
            box = field["box"]
            is_on_page = box is not None and len(box) == 4 and all(0 <= number <= 1 for number in box)
            found.append(
                {
                    "name": name,
                    "value": text,
                    "kind": FIELDS.get(name, "text"),
                    "confidence": field["confidence"],
                    "page": field["page"],
                    "box": box if is_on_page else None,
                    "reason": f"Step {field['step']} of the configuration." if field["step"] else "",
                }
            )
    return found


def publish(claim: Claim, found: Sequence[Mapping[str, Any]]) -> None:
    """Replace what earlier runs of the same configuration have published for this document.

    Call this in the transaction in which the run succeeds.
    """
    document_id = claim.values["input_document_id"]
    rows = DocumentField.objects.filter(document=document_id, source__startswith=f"{SOURCE} ")
    sources = {int(source.partition(" ")[2]): source for source in rows.values_list("source", flat=True).distinct()}
    same = Run.objects.filter(pk__in=sources, configuration=claim.values["configuration_id"])
    replaces = [sources[id] for id in same.values_list("pk", flat=True)]
    document_fields.publish_run(document_id, f"{SOURCE} {claim.id}", replaces, [dict(each) for each in found])
