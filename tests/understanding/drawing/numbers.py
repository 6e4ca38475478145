"""Numbers of made-up companies: VAT IDs and IBANs with right or wrong check digits."""

import re
from functools import cache

from stdnum import iban, numdb

from ade_understanding.recognition.ids import vat_checksum

_FORMS = {
    "GB": "#########", "DE": "#########", "NL": "#########B0#", "ES": "B########", "IT": "0#########9#",
    "PT": "5########", "PL": "##########",
}  # fmt: skip


def _filled(chance, form):
    return "".join(str(chance.randrange(10)) if each == "#" else each for each in form)


def vat_id(chance, country, is_valid):
    for _ in range(20_000):
        if country == "FR":
            siren = _filled(chance, "#########")
            number = f"FR{(12 + 3 * (int(siren) % 97)) % 97:02}{siren}"
        elif country == "IT":
            number = f"IT0{_filled(chance, '######')}{chance.choice(['015', '058', '001'])}{chance.randrange(10)}"
        else:
            number = country + _filled(chance, _FORMS[country])
        if bool(vat_checksum(number)) is is_valid:
            return number
    raise AssertionError(f"No VAT ID of {country} was found.")


@cache
def _structure(country):
    return re.findall(r"(\d+)!([nac])", numdb.get("iban").info(country + 30 * "0")[0][1]["bban"])


def account(chance, country, is_valid):
    letters = "ABCDEFGHKLMNPRST"
    rest = "".join(
        chance.choice(letters) if kind == "a" else str(chance.randrange(10))
        for count, kind in _structure(country)
        for _ in range(int(count))
    )
    check = iban.calc_check_digits(f"{country}00{rest}")
    return f"{country}{check if is_valid else f'{(int(check) + 7) % 97:02}'}{rest}"
