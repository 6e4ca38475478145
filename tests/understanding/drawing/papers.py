"""Draws invoices with all that is printed on them as truth. The same seed draws the same paper."""

import random
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from tests.understanding.drawing import numbers
from tests.understanding.drawing.sheets import Sheet, width_of
from tests.understanding.drawing.wording import NAMES, WORDING

CENT = Decimal("0.01")


@dataclass
class Party:
    name: str
    person: str
    street: str
    city: str
    vat_id: str
    iban: str
    bic: str

    def lines(self):
        return [self.name, self.street, self.city]


@dataclass
class Paper:
    language: str
    layout: str
    pages: list[dict[str, Any]]
    # The printed values by field, as the recogniser writes them.
    truth: dict[str, str]
    lines: list[tuple[Any, ...]]
    type: str = "invoice"


@dataclass
class Draft:
    """What an invoice says, before it is drawn."""

    chance: random.Random
    language: str
    words: dict[str, Any] = field(default_factory=dict)
    truth: dict[str, str] = field(default_factory=dict)
    # Pairs of label and value, in the order in which they are printed.
    pairs: list[tuple[str, str]] = field(default_factory=list)
    items: list[tuple[Any, ...]] = field(default_factory=list)
    # Label, value and whether it stands out.
    totals: list[tuple[Any, ...]] = field(default_factory=list)
    terms: str = ""

    def label(self, name):
        """Return a label: mostly a usual one, sometimes the rarest."""
        labels = self.words["labels"][name]
        return labels[min(int(self.chance.random() ** 1.5 * len(labels)), len(labels) - 1)]

    def day(self, day, form):
        months = self.words["months"]
        return form.format(d=day.day, m=day.month, y=day.year, yy=day.year % 100, name=months[day.month - 1])

    def amount(self, value):
        thousands, decimals = self.words["marks"]
        text = f"{value:,.2f}".replace(",", "_").replace(".", decimals).replace("_", thousands)
        return text if abs(value) < 10_000 or self.chance.random() < 0.9 else text.replace(thousands, "")


def party(chance, language, *, is_company=True):
    words = WORDING[language]
    name = f"{chance.choice(NAMES)} {chance.choice(words['trades'])} {chance.choice(words['forms'])}"
    if chance.random() < 0.15:
        name = name.upper()
    if not is_company or chance.random() < 0.05:
        name = chance.choice(words["people"]).split(" ", 1)[1]
    country = words["country"]
    letters = "".join(chance.choice("BCDFGHKLMNPRST") for _ in range(4))
    return Party(
        name,
        chance.choice(words["people"]),
        chance.choice(words["streets"]),
        chance.choice(words["cities"]),
        numbers.vat_id(chance, country, chance.random() < 0.75),
        numbers.account(chance, country, chance.random() < 0.8),
        f"{letters}{country}{chance.choice(['2L', 'FF', 'MM', '22'])}{chance.choice(['', 'XXX', '1M0'])}",
    )


def number(chance, year):
    forms = ["{y}-{n:04}", "RE-{y}-{n}", "{n:06}", "INV{n:05}", "F{y}/{n:03}", "{n}/{y}", "FV/{n}/{m:02}/{y}"]
    form = chance.choice([*forms, "{y}{n:05}", "A-{n}.{m}", "VF{n:07}"])
    return form.format(y=year, n=chance.randrange(11, 99_999), m=chance.randrange(1, 13))


def draft(chance, language):
    words = WORDING[language]
    paper = Draft(chance, language, words)
    truth, form = paper.truth, chance.choice(words["dates"])
    issued = date(chance.randrange(2012, 2027), 1, 1) + timedelta(days=chance.randrange(365))
    is_credit = chance.random() < 0.06
    paper.truth["type"] = "credit_note" if is_credit else "invoice"
    truth["invoice_number"] = number(chance, issued.year)
    truth["invoice_date"] = issued.isoformat()
    pairs = [("invoice_number", truth["invoice_number"]), ("invoice_date", paper.day(issued, form))]
    due = issued + timedelta(days=chance.choice([7, 10, 14, 30, 30, 45]))
    way = chance.random()
    if way < 0.45:
        pairs.append(("due_date", paper.day(due, form)))
        truth["due_date"] = due.isoformat()
    elif way < 0.75:
        paper.terms = paper.label("terms").format(due=paper.day(due, form))
        truth["due_date"] = due.isoformat()
    if chance.random() < 0.4:
        delivered = issued - timedelta(days=chance.randrange(0, 12))
        pairs.append(("delivery_date", paper.day(delivered, form)))
        truth["delivery_date"] = delivered.isoformat()
    elif chance.random() < 0.15:
        begin = issued.replace(day=1) - timedelta(days=30)
        truth["period_start"], truth["period_end"] = begin.isoformat(), issued.isoformat()
        pairs.append(("period", f"{paper.day(begin, form)} - {paper.day(issued, form)}"))
    for name, share, least in (("customer_number", 0.6, 1_000), ("order_number", 0.4, 100)):
        if chance.random() < share:
            truth[name] = chance.choice(["{}", "{}", "K{}", "{}-A"]).format(chance.randrange(least, 999_999))
            pairs.append((name, truth[name]))
    head, rest = pairs[:2], pairs[2:]
    chance.shuffle(rest)
    paper.pairs = [(paper.label(name), value) for name, value in head + rest]
    if chance.random() < 0.5:
        paper.pairs.append(tuple(paper.label("other").replace(" :", ":").split(": ", 1)))
    _amounts(paper, -1 if is_credit and chance.random() < 0.4 else 1)
    return paper


def _amounts(paper, sign):
    chance, words, truth = paper.chance, paper.words, paper.truth
    currency = words["currency"] if chance.random() < 0.93 else "USD"
    symbol = {"EUR": "€", "GBP": "£", "PLN": "zł", "USD": "$"}[currency]
    style = chance.choice(["before", "after", "code", "code before", "none", "after"])
    truth["currency"] = currency

    def money(value):
        text = paper.amount(value)
        forms = {"before": f"{symbol}{text}", "after": f"{text} {symbol}", "code": f"{text} {currency}"}
        return forms.get(style, f"{currency} {text}" if style == "code before" else text)

    rates = chance.sample(words["rates"], min(len(words["rates"]), 1 if chance.random() < 0.7 else 2))
    bases = dict.fromkeys(rates, Decimal())
    for _ in range(chance.choice([1, 1, 2, 3, 4, 6, 9])):
        quantity, price = chance.choice([1, 1, 2, 3, 5, 10, 24]), Decimal(chance.randrange(99, 90_000)) / 100
        if chance.random() < 0.3:
            price = price.to_integral_value() + 1
        rate = chance.choice(rates)
        total = sign * quantity * price
        bases[rate] += total
        paper.items.append((chance.choice(words["articles"]), sign * quantity, price, rate, total))
    bases = {rate: base for rate, base in bases.items() if base}
    taxes = {rate: (base * rate / 100).quantize(CENT) for rate, base in bases.items()}
    net, tax = sum(bases.values()), sum(taxes.values())
    gross = net + tax
    # Without tax, there is neither a net nor a gross amount, but one total.
    labels = paper.label
    totals = [(labels("net_total"), money(net), False)]
    for rate, base in bases.items():
        label = labels("rate").format(r=rate, b=money(base)) if len(bases) > 1 or chance.random() < 0.6 else None
        totals.append((label or labels("tax_total"), money(taxes[rate]), False))
        if label:
            truth[f"tax_amount_{rate}"] = f"{taxes[rate]:.2f} {currency}"
            truth[f"tax_base_{rate}"] = f"{base:.2f} {currency}"
    if len(bases) > 1 and chance.random() < 0.5:
        totals.append((labels("tax_total"), money(tax), False))
    totals.append((labels("gross_total"), money(gross), True))
    due = gross
    if chance.random() < 0.15 and sign > 0:
        paid = (gross * chance.randrange(10, 60) / 100).quantize(CENT)
        due = gross - paid
        truth["prepaid_amount"] = f"{paid} {currency}"
        totals.append((labels("prepaid_amount"), money(-paid if chance.random() < 0.4 else paid), False))
        totals.append((labels("due_amount"), money(due), True))
    elif chance.random() < 0.2:
        totals.append((labels("due_amount"), money(due), True))
    for name, value in (("net_total", net), ("tax_total", tax), ("gross_total", gross), ("due_amount", due)):
        truth[name] = f"{value:.2f} {currency}"
    paper.totals = totals
    if style == "none":
        # Otherwise the paper would not say which currency it is.
        paper.items = [(f"{name} ({currency})", *rest) for name, *rest in paper.items]


def width(texts, size):
    return max((width_of(text, size) for text in texts), default=0.0)


def new_sheet(chance, number=1):
    return Sheet(number, jitter=chance.choice([0, 0, 0, 0.4, 1.2]), chance=chance)
