"""Draws papers that are no invoices: receipts, letters, orders, delivery notes, statements, contracts and prose."""

import random
from datetime import date, timedelta
from decimal import Decimal

from tests.understanding.drawing.papers import CENT, Paper, draft, new_sheet, number, party
from tests.understanding.drawing.wording import NAMES, OTHERS, WORDING


def _start(seed, language, kind):
    chance = random.Random(f"{seed}-{language}-{kind}")
    paper = draft(chance, language)
    issued = date(2015, 1, 1) + timedelta(days=chance.randrange(4_000))
    return chance, paper, issued, OTHERS[language]


def _shop(chance, paper, sheet, shop, language, *, has_address):
    """Draw the top of a receipt, and return where it ends and the phone number."""
    phone = ""
    if chance.random() < 0.5:
        # A shop without a legal form, perhaps on two lines or below the name of its owner.
        trade = chance.choice(WORDING[language]["trades"])
        shop.name = f"{chance.choice(NAMES)} {chance.choice(['', '& Co ', trade + ' '])}".strip()
    if chance.random() < 0.5:
        shop.name = shop.name.upper()
    top = 30
    if chance.random() < 0.2:
        sheet.put(100, top, shop.person.split(" ", 1)[1].upper(), 16)
        top += 40
    lines = shop.lines() if has_address else shop.lines()[:1]
    left = chance.choice([60, 140])
    # Long names are often on two lines.
    name = shop.name.rsplit(" ", 1) if chance.random() < 0.35 else [shop.name]
    if chance.random() < 0.2:
        name[-1] += f" ({chance.randrange(10**5, 10**6)}-{chance.choice('HKTW')})"
    y = sheet.lines(left, top, name, chance.choice([16, 18, 24]), 1.35)
    y = sheet.lines(left, y + 4, lines[1:], 16, 1.5)
    if chance.random() < 0.4:
        phone = f"0{chance.randrange(10, 99)} {chance.randrange(10**5, 10**7)}"
        sheet.put(60, y, f"{paper.label('phone')}: {phone}", 16)
        y += 26
    return y, phone


def _pay(chance, words, lines, total):
    """Add lines about rounding and payment, and return the total to pay."""
    if chance.random() < 0.3:
        # The sum is rounded to what can be paid with coins.
        rounded = (total * 20).quantize(Decimal(1)) / 20
        if rounded != total:
            lines.append((words["rounding"], rounded - total))
            total = rounded
            lines.append((f"{lines[0][0]} {words['rounded']}", total))
    if chance.random() < 0.3:
        lines.insert(0, (words["pieces"], Decimal(chance.randrange(1, 9))))
    if chance.random() < 0.6:
        paid = total if chance.random() < 0.3 else (total // 10 + 1) * 10
        lines += [(words["cash"], paid), (words["change"], paid - total)]
    return total


def receipt(seed, language):
    """A narrow slip: the shop at the top, articles, the total, how it was paid."""
    chance, paper, issued, words = _start(seed, language, "receipt")
    sheet = new_sheet(chance)
    shop = party(chance, language)
    currency = WORDING[language]["currency"]
    vat_id, has_address = "", chance.random() < 0.8
    y, phone = _shop(chance, paper, sheet, shop, language, has_address=has_address)
    if chance.random() < 0.6:
        sheet.put(60, y, f"{paper.label('vat_id')}: {shop.vat_id}", 16)
        y += 26
        vat_id = shop.vat_id
    if chance.random() < 0.5:
        sheet.put(200, y, chance.choice(words["receipt"]), 18)
        y += 30
    truth = {"seller": shop.name, "date": issued.isoformat()}
    truth |= {name: value for name, value in (("vat_id", vat_id), ("phone", phone)) if value}
    if has_address:
        truth["seller_address"] = f"{shop.street}, {shop.city}"
    day = paper.day(issued, chance.choice(WORDING[language]["dates"]))
    when = f"{day} {chance.randrange(8, 20):02}:{chance.randrange(60):02}"
    at_top = chance.random() < 0.5
    if at_top:
        sheet.put(60, y, when if chance.random() < 0.5 else f"{words['date']}: {when}", 16)
        y += 34
    total = Decimal()
    for _ in range(chance.randrange(1, 7)):
        price = Decimal(chance.randrange(50, 4_000)) / 100
        count = chance.choice([1, 1, 1, 2, 3])
        total += count * price
        sheet.put(60, y, chance.choice(WORDING[language]["articles"]), 16)
        if chance.random() < 0.4:
            y += 24
            sheet.put(60, y, f"{count} x {paper.amount(price)}", 16)
        sheet.put(530, y, paper.amount(count * price), 16, right=True)
        y += 26
    rate = chance.choice(WORDING[language]["rates"])
    tax = (total * rate / (100 + rate)).quantize(CENT)
    net = total - tax
    lines = [(chance.choice(words["total"]), total)]
    if chance.random() < 0.4:
        lines.insert(0, (chance.choice(WORDING[language]["labels"]["net_total"]), net))
        lines.insert(1, (f"{chance.choice(WORDING[language]['labels']['tax_total'])} {rate}%", tax))
        truth["net_total"], truth[f"tax_base_{rate}"] = f"{net:.2f}", f"{net:.2f}"
        truth["tax_total"], truth[f"tax_amount_{rate}"] = f"{tax:.2f}", f"{tax:.2f}"
    total = _pay(chance, words, lines, total)
    if chance.random() < 0.3:
        lines.append((f"{words['summary']} {rate}%", net))
    mark = chance.choice(["", f"{currency} ", ""])
    for label, value in lines:
        big = label in words["total"] and chance.random() < 0.4
        sheet.put(60, y, f"{label}{chance.choice([':', '', ' :'])}", 22 if big else 16)
        sheet.put(530, y, mark + paper.amount(value), 22 if big else 16, right=True)
        y += 30
    if not at_top:
        sheet.put(60, y, when, 16)
        y += 26
    sheet.put(120, y + 10, words["thanks"], 16)
    truth |= {"gross_total": f"{total:.2f}", "due_amount": f"{total:.2f}"}
    if mark:
        truth["currency"] = currency
        amounts = [name for name in truth if name.endswith(("total", "amount")) or name.startswith("tax_")]
        truth |= {name: f"{truth[name]} {currency}" for name in amounts}
    return Paper(language, "receipt", [sheet.page()], truth, [], "receipt")


def letter_without(seed, language):
    chance, paper, issued, words = _start(seed, language, "letter")
    sheet = new_sheet(chance)
    sender, reader = party(chance, language), party(chance, language)
    sheet.lines(360, 40, sender.lines(), 10)
    sheet.lines(55, 110, reader.lines(), 10)
    day = paper.day(issued, chance.choice(WORDING[language]["dates"]))
    sheet.put(380, 200, day if chance.random() < 0.5 else f"{sender.city.split()[-1]}, {day}", 10)
    sheet.put(55, 250, words["dear"], 10)
    y = sheet.lines(55, 280, _prose(chance, paper, words, 9, language), 10, 1.5)
    sheet.put(55, y + 20, words["regards"], 10)
    sheet.put(55, y + 50, sender.person, 10)
    return Paper(language, "letter", [sheet.page()], {"date": issued.isoformat()}, [], "letter")


def _prose(chance, paper, words, count, language):
    lines = []
    for _ in range(count):
        line = chance.choice(words["prose"])
        day = date(2014, 1, 1) + timedelta(days=chance.randrange(4_000))
        amount = paper.amount(Decimal(chance.randrange(100, 900_000)) / 100)
        lines.append(line.format(day=paper.day(day, WORDING[language]["dates"][0]), amount=amount))
    return lines


def prose(seed, language):
    """A page of a report or a contract: sentences with days and amounts."""
    chance, paper, _, words = _start(seed, language, "prose")
    sheet = new_sheet(chance)
    kind = chance.choice(["contract", "other", "other"])
    sheet.put(150, 60, chance.choice(words[kind]), 16)
    sheet.lines(55, 120, _prose(chance, paper, words, 24, language), 10, 1.6)
    return Paper(language, "prose", [sheet.page()], {}, [], kind)


def order(seed, language):
    """An order or a delivery note: two parties and articles, but nothing to pay."""
    chance, paper, issued, words = _start(seed, language, "order")
    kind = chance.choice(["order", "delivery_note"])
    sheet = new_sheet(chance)
    sender, reader = party(chance, language), party(chance, language)
    sheet.put(55, 36, sender.name, 14)
    sheet.lines(55, 130, reader.lines(), 10)
    sheet.put(55, 220, chance.choice(words[kind]), 15)
    day = paper.day(issued, chance.choice(WORDING[language]["dates"]))
    name = number(chance, issued.year)
    sheet.put(340, 130, f"{words['number']}: {name}", 10)
    sheet.put(340, 146, f"{words['date']}: {day}", 10)
    y = 260
    for article in chance.sample(WORDING[language]["articles"], 3):
        sheet.put(55, y, article, 10)
        sheet.put(400, y, str(chance.randrange(1, 30)), 10, right=True)
        y += 18
    truth = {"date": issued.isoformat(), "seller": sender.name, "buyer": reader.name}
    truth |= {"buyer_address": f"{reader.street}, {reader.city}"}
    return Paper(language, kind, [sheet.page()], truth, [], kind)


def statement(seed, language):
    """A statement of an account: many lines with days and amounts."""
    chance, paper, issued, words = _start(seed, language, "statement")
    sheet = new_sheet(chance)
    bank = party(chance, language)
    sheet.put(55, 40, bank.name, 14)
    sheet.put(55, 100, chance.choice(words["statement"]), 15)
    sheet.put(55, 130, f"IBAN: {bank.iban}", 10)
    y = 170
    for _ in range(12):
        day = issued + timedelta(days=chance.randrange(30))
        sheet.put(55, y, paper.day(day, WORDING[language]["dates"][0]), 10)
        sheet.put(140, y, chance.choice(WORDING[language]["articles"]), 10)
        sheet.put(540, y, paper.amount(Decimal(chance.randrange(-90_000, 90_000)) / 100), 10, right=True)
        y += 16
    return Paper(language, "statement", [sheet.page()], {"iban": bank.iban}, [], "statement")


KINDS = {each.__name__: each for each in (receipt, letter_without, prose, order, statement)}
