"""Checks numbers that have a checksum: bank accounts (IBAN) and VAT IDs."""

import re
from functools import cache

from stdnum import iban, numdb
from stdnum.ch import uid
from stdnum.exceptions import InvalidChecksum, InvalidComponent, ValidationError
from stdnum.util import get_cc_module

# What the prefix of a VAT ID stands for, where it is not the code of the country.
_PREFIXES = {"EL": "gr", "XI": "gb"}
_COUNTRIES = [
    "AT", "BE", "BG", "CH", "CY", "CZ", "DE", "DK", "EE", "EL", "ES", "FI", "FR", "GB", "HR", "HU", "IE", "IT", "LT",
    "LU", "LV", "MT", "NL", "NO", "PL", "PT", "RO", "SE", "SI", "SK", "XI",
]  # fmt: skip
# Imported here, because a process that is forked for each document would import them each time.
_MODULES = {code: get_cc_module(_PREFIXES.get(code, code.lower()), "vat") for code in _COUNTRIES} | {"CH": uid}
VAT_COUNTRIES = frozenset(_COUNTRIES)
_ACCOUNTS = numdb.get("iban")
_PARTS = re.compile(r"\d+")
# Countries that add letters to the digits of their VAT IDs, or let them follow the country.
_LETTERED = frozenset({"AT", "CH", "CY", "ES", "FR", "IE", "NL"})


@cache
def iban_length(country: str) -> int:
    """Return the length of an IBAN of this country, or 0 if the country has none."""
    structure: str = _ACCOUNTS.info(country + 30 * "0")[0][1].get("bban", "")
    return 4 + sum(int(part) for part in _PARTS.findall(structure)) if structure else 0


def is_iban(text: str) -> bool:
    """Return whether an IBAN is valid. It must be in capitals and without spaces."""
    return bool(iban.is_valid(text, check_country=False))


def vat_checksum(vat_id: str) -> bool | None:
    """Return whether the checksum is right, or None if it is no VAT ID. It must begin with the country."""
    country, rest = vat_id[:2], vat_id[2:]
    module = _MODULES.get(country)
    if module is None or not (rest.isdigit() or country in _LETTERED):
        return None
    try:
        module.validate(vat_id if country == "CH" else rest)
    except (InvalidChecksum, InvalidComponent):
        return False
    except ValidationError:
        return None
    return True
