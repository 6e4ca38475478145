"""Checks numbers that have a checksum: bank accounts (IBAN) and VAT IDs."""

import re

# The length of an IBAN by country.
IBAN_LENGTHS = {
    "AD": 24, "AE": 23, "AT": 20, "BE": 16, "BG": 22, "CH": 21, "CY": 28, "CZ": 24, "DE": 22, "DK": 18, "EE": 20,
    "ES": 24, "FI": 18, "FR": 27, "GB": 22, "GI": 23, "GR": 27, "HR": 21, "HU": 28, "IE": 22, "IL": 23, "IS": 26,
    "IT": 27, "LI": 21, "LT": 20, "LU": 20, "LV": 21, "MC": 27, "MT": 31, "NL": 18, "NO": 15, "PL": 28, "PT": 25,
    "RO": 24, "RS": 22, "SA": 24, "SE": 24, "SI": 19, "SK": 24, "SM": 27, "TR": 26, "UA": 29,
}  # fmt: skip
# VAT IDs without spaces, dots and dashes.
_VAT_FORMATS = {
    "AT": r"ATU\d{8}", "BE": r"BE[01]\d{9}", "BG": r"BG\d{9,10}", "CH": r"CHE\d{9}", "CY": r"CY\d{8}[A-Z]",
    "CZ": r"CZ\d{8,10}", "DE": r"DE\d{9}", "DK": r"DK\d{8}", "EE": r"EE\d{9}", "EL": r"EL\d{9}",
    "ES": r"ES[A-Z0-9]\d{7}[A-Z0-9]", "FI": r"FI\d{8}", "FR": r"FR[A-HJ-NP-Z0-9]{2}\d{9}", "GB": r"GB\d{9}(?:\d{3})?",
    "HR": r"HR\d{11}", "HU": r"HU\d{8}", "IE": r"IE\d[A-Z0-9]\d{5}[A-Z]{1,2}", "IT": r"IT\d{11}",
    "LT": r"LT(?:\d{9}|\d{12})", "LU": r"LU\d{8}", "LV": r"LV\d{11}", "MT": r"MT\d{8}", "NL": r"NL\d{9}B\d{2}",
    "PL": r"PL\d{10}", "PT": r"PT\d{9}", "RO": r"RO\d{4,10}", "SE": r"SE\d{10}01", "SI": r"SI\d{8}", "SK": r"SK\d{10}",
}  # fmt: skip
VAT_COUNTRIES = _VAT_FORMATS.keys()
_VAT_PATTERNS = {country: re.compile(pattern) for country, pattern in _VAT_FORMATS.items()}


def is_iban(iban: str) -> bool:
    """Return whether an IBAN is valid. It must be in capitals and without spaces."""
    return len(iban) == IBAN_LENGTHS.get(iban[:2]) and _remainder(iban[4:] + iban[:4]) == 1


def is_vat_format(vat_id: str) -> bool:
    pattern = _VAT_PATTERNS.get(vat_id[:2])
    return pattern is not None and pattern.fullmatch(vat_id) is not None


def vat_checksum(vat_id: str) -> bool | None:
    """Return whether the checksum is right, or None if none is known for the country or the kind of ID."""
    country, digits = vat_id[:2], vat_id[2:]
    match country:
        case "AT":
            values = [int(digit) for digit in digits[1:]]
            total = sum(value // 5 + value * 2 % 10 if place % 2 else value for place, value in enumerate(values[:-1]))
            return (10 - (total + 4) % 10) % 10 == values[-1]
        case "BE":
            return 97 - int(digits[:8]) % 97 == int(digits[8:])
        case "CH":
            return (11 - _weighted_sum(digits[1:9], (5, 4, 3, 2, 7, 6, 5, 4)) % 11) % 11 == int(digits[9])
        case "DE":
            # ISO 7064, modulus 11, 10.
            product = 10
            for digit in digits[:-1]:
                product = 2 * ((int(digit) + product) % 10 or 10) % 11
            return (11 - product) % 10 == int(digits[-1])
        case "DK":
            return _weighted_sum(digits, (2, 7, 6, 5, 4, 3, 2, 1)) % 11 == 0
        case "FR":
            key, siren = digits[:2], digits[2:]
            if not key.isdigit():
                return None  # the newer kind, with letters
            return _luhn(siren) and (12 + 3 * (int(siren) % 97)) % 97 == int(key)
        case "GB":
            return (_weighted_sum(digits[:7], (8, 7, 6, 5, 4, 3, 2)) + int(digits[7:9])) % 97 in (0, 42)
        case "IT":
            return _luhn(digits)
        case "LU":
            return int(digits[:6]) % 89 == int(digits[6:])
        case "NL":
            # The company number or, for IDs since 2020, the whole ID like an IBAN.
            of_company = _weighted_sum(digits[:8], (9, 8, 7, 6, 5, 4, 3, 2)) % 11 == int(digits[8])
            return of_company or _remainder(vat_id) == 1
        case "PL":
            return _weighted_sum(digits[:9], (6, 5, 7, 2, 3, 4, 5, 6, 7)) % 11 == int(digits[9])
    return None


def _remainder(characters: str) -> int:
    return int("".join(str(int(character, 36)) for character in characters)) % 97


def _weighted_sum(digits: str, weights: tuple[int, ...]) -> int:
    return sum(int(digit) * weight for digit, weight in zip(digits, weights, strict=True))


def _luhn(digits: str) -> bool:
    doubled = [int(digit) * (2 if place % 2 else 1) for place, digit in enumerate(reversed(digits))]
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0
