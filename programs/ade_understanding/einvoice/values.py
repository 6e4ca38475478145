"""Writes numbers as the values of fields."""

from decimal import Decimal

from ade_understanding.einvoice.model import Amount


def plain(value: Decimal) -> str:
    """Return a number without needless zeros, such as 20 or 7.5."""
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def money(value: Decimal) -> str:
    """Return a number with at least two decimals."""
    whole, _, decimals = plain(value).partition(".")
    return f"{whole}.{decimals:0<2}"


def cents(value: Decimal) -> str:
    return f"{value:.2f}"


def amount(of: Amount | None) -> str:
    """Return an amount with its currency, or as it is written if it is no number."""
    if of is None:
        return ""
    return f"{of.text if of.value is None else money(of.value)} {of.currency}".strip()


def decimal(of: Amount | None) -> str:
    if of is None:
        return ""
    return of.text if of.value is None else plain(of.value)
