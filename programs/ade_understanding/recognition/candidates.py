"""What a page says about a field: a value with its place and the signs for it and against it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ade_understanding.recognition.rows import Box
from ade_understanding.vocabulary import TAX_AMOUNT, TAX_BASE

SOURCE = "page"
# How a value was found, as people read it.
_HOW = {
    "same": "After the label ‘{}’",
    "right": "Right of the label ‘{}’",
    "below": "Below the label ‘{}’",
    "title": "In the title ‘{}’",
    "section": "In the section ‘{}’",
    "sentence": "In the sentence ‘{}’",
    "address": "Above an address",
    "sender": "In the line of the sender",
    "letterhead": "At the top of the page",
    "footer": "Beside the company’s numbers",
    "form": "Recognised by its form",
    "rates": "In the line of a tax rate",
    "sum": "Calculated from other amounts",
    "only": "The only one on the pages",
}
_SIGNS = {
    "adds_up": "the amounts add up with it",
    "adds_up_not": "the amounts do not add up with it",
    "checked": "its check digits are right",
    "doubtful": "its check digits are wrong",
    "ambiguous": "it may be another day",
    "sums up": "it is the sum of amounts above it",
    "cash": "it is what was paid less the change",
    "rivals": "other values are possible",
    "repeated": "it occurs more than once",
}
LONGEST_QUOTE = 60


@dataclass(slots=True)
class Candidate:
    name: str
    value: str
    kind: str
    page: int
    box: Box | None
    how: str
    label: str = ""
    signs: set[str] = field(default_factory=set)
    confidence: float = 0.0
    is_other: bool = False
    # Whether another field has this value, so that it cannot be chosen.
    is_excluded: bool = False
    # The name above an address.
    owner: str = ""

    def features(self) -> Iterator[str]:
        """Yield what the weights of the model are for."""
        is_rate = self.name.startswith((TAX_AMOUNT, TAX_BASE))
        group = "rate" if is_rate else GROUPS.get(self.name, self.kind)
        yield "field of a rate" if is_rate else f"field {self.name}"
        yield f"how {self.how}"
        yield f"{group} {self.how}"
        for sign in self.signs:
            yield f"sign {sign}"
            yield f"{group} {sign}"
            # The top of a receipt is unlike the top of a letter.
            if self.name == "seller" and "in receipt" in self.signs:
                yield f"receipt {group} {sign}"

    def reason(self) -> str:
        quote = self.label if len(self.label) <= LONGEST_QUOTE else f"{self.label[:LONGEST_QUOTE]}…"
        parts = [_HOW[self.how].format(quote), *(text for sign, text in _SIGNS.items() if sign in self.signs)]
        return "; ".join(parts) + "."

    def to_field(self) -> dict[str, Any]:
        found = {
            "name": self.name,
            "value": self.value,
            "kind": self.kind,
            "confidence": round(self.confidence, 3),
            "page": self.page,
            "box": self.box,
            "source": SOURCE,
            "reason": self.reason(),
        }
        return found | {"other": True} if self.is_other else found


# Fields whose weights are shared, where the kind of their values does not say it.
GROUPS = {
    "seller": "seller",
    "buyer": "buyer",
    "seller_address": "seller address",
    "buyer_address": "buyer address",
    "payment_terms": "terms",
    "currency": "currency",
    "bic": "bic",
}
