"""The types of documents: which fields a document of a type has, and when it needs review.

The built-in types are declared here. A workspace adds its own, and may replace a built-in one by using its name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ade_understanding.vocabulary import FIELDS, TAX_AMOUNT, TAX_BASE
from documents.models import DocumentType
from documents.models.fields import UNSURE_BELOW


@dataclass(frozen=True)
class FieldSpec:
    name: str
    kind: str = "text"
    is_required: bool = False
    threshold: float | None = None


@dataclass(frozen=True)
class TypeSpec:
    name: str
    label: str
    fields: Sequence[FieldSpec] = ()
    threshold: float = UNSURE_BELOW
    # Words that every document of this type contains. Without words, the reader recognises the type.
    words: Sequence[str] = ()
    is_built_in: bool = True
    # Whether the fields of invoices per tax rate belong to the type as well.
    has_tax_rates: bool = False

    def has(self, name: str) -> bool:
        return name in self._by_name or (self.has_tax_rates and name.startswith((TAX_BASE, TAX_AMOUNT)))

    def threshold_of(self, name: str) -> float:
        spec = self._by_name.get(name)
        return self.threshold if spec is None or spec.threshold is None else spec.threshold

    @property
    def required(self) -> list[FieldSpec]:
        return [spec for spec in self.fields if spec.is_required]

    def kind_of(self, name: str) -> str | None:
        spec = self._by_name.get(name)
        return spec.kind if spec else None

    @cached_property
    def order(self) -> Mapping[str, int]:
        return {spec.name: number for number, spec in enumerate(self.fields)}

    @cached_property
    def _by_name(self) -> Mapping[str, FieldSpec]:
        return {spec.name: spec for spec in self.fields}


def _built_in(name: str, label: str, required: str, others: str, *, has_tax_rates: bool = False) -> TypeSpec:
    needed = set(required.split())
    names = dict.fromkeys(f"{required} {others}".split())
    in_order = [each for each in FIELDS if each in names]
    fields = [FieldSpec(each, FIELDS[each], each in needed) for each in in_order]
    return TypeSpec(name, label, fields, has_tax_rates=has_tax_rates)


_PARTIES = "seller seller_address vat_id tax_number buyer buyer_address buyer_vat_id customer_number"
_TOTALS = "currency net_total tax_total prepaid_amount due_amount"
_PAYMENT = "iban bic payment_terms due_date"
_CONTACT = "email phone fax"
BUILT_IN: Mapping[str, TypeSpec] = {
    spec.name: spec
    for spec in (
        _built_in(
            *("invoice", "Invoice", "invoice_number invoice_date seller gross_total"),
            f"{_PARTIES} {_TOTALS} {_PAYMENT} order_number order_date contract_number delivery_note_number"
            f" delivery_date period_start period_end {_CONTACT}",
            has_tax_rates=True,
        ),
        _built_in(
            *("credit_note", "Credit note", "invoice_number invoice_date seller gross_total"),
            f"{_PARTIES} {_TOTALS} {_PAYMENT} order_number delivery_date period_start period_end {_CONTACT}",
            has_tax_rates=True,
        ),
        _built_in(
            *("receipt", "Receipt", "seller date gross_total"),
            "seller_address vat_id tax_number currency net_total tax_total invoice_number phone",
            has_tax_rates=True,
        ),
        _built_in(
            *("order", "Order", "order_number order_date"),
            f"{_PARTIES} {_TOTALS} gross_total payment_terms delivery_date contract_number {_CONTACT}",
        ),
        _built_in(
            *("delivery_note", "Delivery note", "delivery_note_number"),
            f"{_PARTIES} date delivery_date order_number order_date {_CONTACT}",
        ),
        _built_in("contract", "Contract", "", f"contract_number date period_start period_end {_PARTIES} {_CONTACT}"),
        _built_in(
            *("statement", "Statement", "", f"date period_start period_end iban bic currency {_PARTIES} {_CONTACT}")
        ),
        _built_in(
            *("letter", "Letter", "", f"date customer_number contract_number invoice_number order_number {_CONTACT}")
        ),
        # A document of no other type has all fields that ADE knows.
        TypeSpec("other", "Other", [FieldSpec(name, kind) for name, kind in FIELDS.items()], has_tax_rates=True),
    )
}
UNKNOWN = TypeSpec("", "Unknown", BUILT_IN["other"].fields, has_tax_rates=True)


@dataclass(frozen=True)
class WorkspaceTypes:
    """The types of a workspace by name: its own and the built-in ones."""

    own: Mapping[str, TypeSpec] = field(default_factory=dict)

    def get(self, name: str) -> TypeSpec:
        return self.own.get(name) or BUILT_IN.get(name) or UNKNOWN

    def __contains__(self, name: str) -> bool:
        return name in self.own or name in BUILT_IN

    def all(self) -> list[TypeSpec]:
        others = (spec for name, spec in BUILT_IN.items() if name not in self.own)
        return [*self.own.values(), *others]

    def with_words(self) -> list[TypeSpec]:
        return [spec for spec in self.own.values() if spec.words]


def of_workspace(workspace_id: int) -> WorkspaceTypes:
    """Return the types of a workspace. A single query reads its own types with their fields."""
    columns = ("name", "label", "words", "threshold", "fields__name", "fields__kind", "fields__required")
    rows = DocumentType.objects.filter(workspace=workspace_id).order_by("name", "fields__position", "fields__id")
    own: dict[str, tuple[str, str, float, list[FieldSpec]]] = {}
    for name, label, words, threshold, of_field, kind, is_required, least in rows.values_list(
        *columns, "fields__threshold"
    ):
        fields = own.setdefault(name, (label, words, threshold, []))[3]
        if of_field is not None:
            fields.append(FieldSpec(of_field, kind, is_required, least))
    return WorkspaceTypes(
        {
            name: TypeSpec(
                name,
                label,
                fields,
                threshold,
                tuple(filter(None, map(str.strip, words.split("\n")))),
                is_built_in=False,
            )
            for name, (label, words, threshold, fields) in own.items()
        }
    )
