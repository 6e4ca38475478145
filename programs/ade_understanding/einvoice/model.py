"""An e-invoice of any syntax. The numbers in comments name the business terms of EN 16931."""

import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import NamedTuple

# No number of an invoice is longer; Python's decimals would accept millions of digits.
LONGEST_NUMBER = 40
# XML has no exponents in decimals.
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")


class Amount(NamedTuple):
    """A number as it is written, and its value, or None if it is no number."""

    text: str
    value: Decimal | None
    currency: str = ""


def number(text: str, currency: str = "") -> Amount | None:
    if not text:
        return None
    is_number = len(text) <= LONGEST_NUMBER and _NUMBER.fullmatch(text) is not None
    return Amount(text, Decimal(text) if is_number else None, currency)


@dataclass
class Party:
    name: str = ""
    trading_name: str = ""
    # An identifier without a scheme, and one of a scheme such as GLN.
    id: str = ""
    global_id: str = ""
    registration: str = ""
    legal_information: str = ""
    # Lines without the country.
    address: tuple[str, ...] = ()
    country: str = ""
    vat_id: str = ""
    tax_number: str = ""
    electronic_address: str = ""
    contact: str = ""
    phone: str = ""
    fax: str = ""
    email: str = ""

    @property
    def full_address(self) -> str:
        return "\n".join([*self.address, *([self.country] if self.country else [])])


@dataclass
class Account:
    iban: str = ""
    number: str = ""
    name: str = ""
    bic: str = ""


@dataclass
class Tax:
    """The tax of one category and rate (BG-23)."""

    category: str
    rate: Amount | None
    base: Amount | None
    amount: Amount | None
    exemption: str = ""


@dataclass
class Allowance:
    """An allowance or a charge of a document or a line. Some programs write allowances as negative amounts."""

    is_charge: bool
    amount: Amount | None
    reason: str = ""
    category: str = ""
    rate: Amount | None = None


@dataclass
class Line:
    position: str = ""
    article: str = ""
    buyer_article: str = ""
    standard_article: str = ""
    description: str = ""
    details: str = ""
    note: str = ""
    quantity: Amount | None = None
    unit: str = ""
    unit_price: Amount | None = None
    # The quantity that the price is for (149).
    price_quantity: Amount | None = None
    tax_category: str = ""
    tax_rate: Amount | None = None
    amount: Amount | None = None
    allowances: list[Allowance] = field(default_factory=list)
    period_start: str = ""
    period_end: str = ""
    # All texts of the line.
    leaves: list[str] = field(default_factory=list)


@dataclass
class Invoice:
    # "CII", "UBL" or "FatturaPA", and the specification that the invoice names (24).
    syntax: str
    profile: str
    type_code: str = ""
    is_credit_note: bool = False
    # Texts, dates (ISO 8601 if they are days) and amounts of the header, by the names of the fields.
    texts: dict[str, str] = field(default_factory=dict)
    dates: dict[str, str] = field(default_factory=dict)
    amounts: dict[str, Amount] = field(default_factory=dict)
    currency: str = ""
    seller: Party = field(default_factory=Party)
    buyer: Party = field(default_factory=Party)
    payee: Party = field(default_factory=Party)
    tax_representative: Party = field(default_factory=Party)
    recipient: Party = field(default_factory=Party)
    accounts: list[Account] = field(default_factory=list)
    # Further terms of payment: each with its due date, amount and text.
    instalments: list[tuple[str, Amount | None, str]] = field(default_factory=list)
    taxes: list[Tax] = field(default_factory=list)
    allowances: list[Allowance] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    # The further invoices of the file.
    others: list["Invoice"] = field(default_factory=list)
    # All texts of the XML, to recognise what of a page it explains.
    leaves: list[str] = field(default_factory=list)
    # Names of amounts that the file does not give; they are sums of others.
    computed: set[str] = field(default_factory=set)

    @property
    def has_lines_by_profile(self) -> bool:
        """Whether the profile asks for lines. The smallest profiles of Factur-X have none."""
        name = self.profile.lower()
        return not (name.endswith((":minimum", ":basicwl")) or "#minimum" in name or "basicwl" in name)
