"""The layouts of drawn invoices. Each draws the same facts in another place and another way."""

import random

from tests.understanding.drawing.papers import Paper, draft, new_sheet, party, width

BOTTOM = 790


class Drawing:
    def __init__(self, paper, seller, buyer, layout):
        self.paper, self.seller, self.buyer, self.layout = paper, seller, buyer, layout
        self.chance = paper.chance
        self.sheet = new_sheet(self.chance)
        self.sheets = [self.sheet]
        self.size = self.chance.choice([8, 9, 9, 10, 11])
        self.colon = self.chance.choice([":", ":", "", " :"])
        self.label = paper.label
        self.says_ids = set()

    def title(self, x, y, size=16):
        name = self.label("credit" if self.paper.truth["type"] == "credit_note" else "title")
        self.sheet.put(x, y, name, size)
        return y + 1.6 * size

    def title_with_number(self, x, y):
        """Draw a title such as "Invoice no. 12 of 3 April", and leave those two out of the pairs."""
        name = self.label("credit" if self.paper.truth["type"] == "credit_note" else "title")
        sign = {"en": "No.", "de": "Nr.", "fr": "n°", "nl": "nr.", "es": "nº", "it": "n.", "pt": "n.º", "pl": "nr"}
        on = {"en": "of", "de": "vom", "fr": "du", "nl": "van", "es": "de", "it": "del", "pt": "de", "pl": "z dnia"}
        language = self.paper.language
        (_, number), (_, day), *rest = self.paper.pairs
        code = "(380) " if self.chance.random() < 0.2 else ""
        with_day = self.chance.random() < 0.7
        text = f"{name} {code}{sign[language]} {number}" + (f" {on[language]} {day}" if with_day else "")
        self.sheet.put(x, y, text, 13)
        self.paper.pairs = rest if with_day else [self.paper.pairs[1], *rest]
        return y + 24

    def pairs_beside(self, x, y, gap=14, right=None):
        """Draw the labels in a column and their values in another one."""
        labels = [f"{label}{self.colon}" for label, _ in self.paper.pairs]
        column = x + width(labels, self.size) + gap
        for label, (_, value) in zip(labels, self.paper.pairs, strict=True):
            self.sheet.put(x, y, label, self.size)
            self.sheet.put(right or column, y, value, self.size, right=right is not None)
            y += 1.5 * self.size
        return y

    def pairs_inline(self, x, y):
        for label, value in self.paper.pairs:
            self.sheet.put(x, y, f"{label}{self.colon or ':'} {value}", self.size)
            y += 1.5 * self.size
        return y

    def pairs_over(self, y, boxes=4):
        """Draw the labels in rows, with their values below them."""
        step = 490 / boxes
        for start in range(0, len(self.paper.pairs), boxes):
            for column, (label, value) in enumerate(self.paper.pairs[start : start + boxes]):
                self.sheet.put(55 + column * step, y, label, self.size - 1)
                self.sheet.put(55 + column * step, y + 1.35 * self.size, value, self.size)
            y += 3.6 * self.size
        return y

    def table(self, y):
        columns = self.chance.choice(self.paper.words["labels"]["columns"]).split("|")
        lefts = [55, 95, 330, 420, 540]
        # The columns of numbers end at these places.
        for at, (name, left) in enumerate(zip(columns, lefts, strict=True)):
            self.sheet.put(left, y, name, self.size, right=at >= 2)
        y += 1.8 * self.size
        for at, (name, quantity, price, _, total) in enumerate(self.paper.items, 1):
            cells = [str(at), name, str(quantity), self.paper.amount(price), self.paper.amount(total)]
            for column, (text, left) in enumerate(zip(cells, lefts, strict=True)):
                self.sheet.put(left, y, text, self.size, right=column >= 2)
            y += 1.7 * self.size
            if self.chance.random() < 0.15:
                self.sheet.put(95, y, f"SN {self.chance.randrange(10**6, 10**7)}", self.size - 1)
                y += 1.4 * self.size
        return self.turn(y + self.size, 60)

    def turn(self, y, needed):
        """Begin another page if there is no room, or sometimes although there is."""
        if y + needed < BOTTOM - 90 and self.chance.random() < 0.93:
            return y
        self.sheet = new_sheet(self.chance, len(self.sheets) + 1)
        self.sheets.append(self.sheet)
        self.sheet.put(55, 30, self.seller.name, 8)
        return 70

    def totals(self, y):
        way = self.chance.choice(["right", "right", "beside", "inline"])
        labels = [f"{label}{self.colon if way != 'right' else ''}" for label, _, _ in self.paper.totals]
        start = self.chance.choice([300, 340, 55])
        for label, (_, value, is_bold) in zip(labels, self.paper.totals, strict=True):
            size = self.size + (2 if is_bold and self.chance.random() < 0.5 else 0)
            if way == "inline":
                self.sheet.put(start, y, f"{label.rstrip(':')}: {value}", size)
            else:
                self.sheet.put(start, y, label, size)
                at = 540 if way == "right" else start + width(labels, self.size + 2) + 70
                self.sheet.put(at, y, value, size, right=True)
            y += 1.7 * self.size
        return y + self.size

    def closing(self, y):
        if self.paper.terms:
            self.sheet.put(55, y, self.paper.terms, self.size)
            y += 1.8 * self.size
        for text in self.paper.words["labels"]["thanks"]:
            if self.chance.random() < 0.5:
                self.sheet.put(55, y, text, self.size)
                y += 1.6 * self.size
        return y

    def ids(self):
        """Return the lines with the numbers of the seller, and note what they say."""
        truth, chance, seller = self.paper.truth, self.chance, self.seller
        lines = []
        if chance.random() < 0.9:
            vat = seller.vat_id
            if self.paper.language in ("es", "it", "pt", "pl") and chance.random() < 0.6:
                vat = vat[2:]
            truth["vat_id"] = vat
            lines.append((self.label("vat_id"), vat))
        if chance.random() < 0.85:
            truth["iban"] = seller.iban
            spaced = " ".join(seller.iban[at : at + 4] for at in range(0, len(seller.iban), 4))
            lines.append(("IBAN", spaced if chance.random() < 0.8 else seller.iban))
            if chance.random() < 0.7:
                truth["bic"] = seller.bic
                lines.append((chance.choice(["BIC", "SWIFT", "BIC/SWIFT"]), seller.bic))
        if chance.random() < 0.3:
            truth["tax_number"] = f"{chance.randrange(100, 999)}{chance.randrange(10_000, 99_999)}"
            lines.append((self.label("tax_number"), truth["tax_number"]))
        if chance.random() < 0.5:
            host = "".join(character for character in seller.name.split()[0].lower() if character.isascii())
            truth["email"] = f"{chance.choice(['info', 'office', 'sales'])}@{host}.example"
            lines.append((chance.choice(["E-Mail", "Email"]), truth["email"]))
        if chance.random() < 0.5:
            truth["phone"] = f"+{chance.randrange(30, 50)} {chance.randrange(10, 99)} {chance.randrange(10**5, 10**7)}"
            lines.append((self.label("phone"), truth["phone"]))
        return lines

    def footer(self):
        lines = self.ids()
        y, size = BOTTOM - 20, 7
        if self.chance.random() < 0.5:
            third = [
                [self.seller.name, self.seller.street, self.seller.city],
                [f"{label}: {value}" for label, value in lines[:2]],
                [self.label("bank"), *(f"{label}: {value}" for label, value in lines[2:])],
            ]
            for column, texts in enumerate(third):
                self.sheet.lines(55 + column * 175, y - 20, texts, size)
        else:
            text = [self.seller.name, *(f"{label}: {value}" for label, value in lines)]
            parts = [" · ".join(text[at : at + 3]) for at in range(0, len(text), 3)]
            self.sheet.lines(55, y - 20, parts, size)
        if self.chance.random() < 0.4:
            self.sheet.put(480, BOTTOM + 25, f"{len(self.sheets)}/{len(self.sheets)}", 7)

    def id_block(self, x, y):
        for label, value in self.ids():
            self.sheet.put(x, y, f"{label}: {value}", self.size)
            y += 1.45 * self.size
        return y

    def finish(self, language):
        truth = self.paper.truth
        for name, each in (("seller", self.seller), ("buyer", self.buyer)):
            truth[name], truth[f"{name}_address"] = each.name, f"{each.street}, {each.city}"
        if self.paper.terms:
            truth["payment_terms"] = self.paper.terms
        kind = truth.pop("type")
        return Paper(language, self.layout, [sheet.page() for sheet in self.sheets], truth, self.paper.items, kind)


def letter(drawing):
    """Sender line and address window on the left, facts on the right."""
    sheet, seller, chance = drawing.sheet, drawing.seller, drawing.chance
    sheet.put(chance.choice([55, 350]), 40, seller.name, chance.choice([12, 16, 20]))
    if chance.random() < 0.7:
        mark = chance.choice([" · ", ", ", " - ", " | "])
        sheet.put(55, 128, mark.join(seller.lines()), 6)
    lines = drawing.buyer.lines()
    if chance.random() < 0.3:
        lines.insert(1, drawing.buyer.person)
    sheet.lines(55, 142, lines, drawing.size)
    facts = chance.choice([drawing.pairs_beside, drawing.pairs_inline])
    if chance.random() < 0.5:
        below = facts(360, 140)
        y = drawing.title(55, max(235, below + 10))
    else:
        y = drawing.title_with_number(55, 245)
        below = facts(360, 130)
        y = max(y, below + 10)
    return y + 6


def sections(drawing):
    """Headings over the seller and the buyer, side by side."""
    sheet, chance = drawing.sheet, drawing.chance
    y = drawing.title(chance.choice([55, 230, 430]), 40, chance.choice([14, 18, 24]))
    places = [(55, "seller", drawing.seller), (320, "buyer", drawing.buyer)]
    if chance.random() < 0.25:
        places = [(55, "buyer", drawing.buyer), (320, "seller", drawing.seller)]
    bottom = y
    for x, name, party_ in places:
        sheet.put(x, y + 10, f"{drawing.label(name)}{drawing.colon}", drawing.size)
        lines = party_.lines()
        if name == "buyer" and chance.random() < 0.4:
            drawing.paper.truth["buyer_vat_id"] = party_.vat_id
            lines.append(f"{drawing.label('vat_id')}: {party_.vat_id}")
        bottom = max(bottom, sheet.lines(x, y + 26, lines, drawing.size))
    way = chance.choice([drawing.pairs_beside, drawing.pairs_inline, None])
    return (way(55, bottom + 16) if way else drawing.pairs_over(bottom + 16)) + 12


def strip(drawing):
    """Letterhead at the top, the facts in a strip of boxes."""
    sheet, chance = drawing.sheet, drawing.chance
    sheet.put(55, 36, drawing.seller.name, chance.choice([11, 14, 18]))
    sheet.lines(55, 58, drawing.seller.lines()[1:], 8)
    drawing.title(400, 40, 18)
    x = chance.choice([55, 330])
    sheet.put(x, 120, f"{drawing.label('buyer')}{drawing.colon}", drawing.size)
    y = sheet.lines(x, 136, drawing.buyer.lines(), drawing.size)
    if chance.random() < 0.3:
        other = party(chance, drawing.paper.language)
        sheet.put(385 - x, 120, f"{drawing.label('delivery')}{drawing.colon}", drawing.size)
        sheet.lines(385 - x, 136, [drawing.buyer.name, other.street, other.city], drawing.size)
    return drawing.pairs_over(y + 20, chance.choice([3, 4, 5])) + 10


def listing(drawing):
    """One fact per line, as in a printed form: labels on the left, values in the middle."""
    sheet, chance = drawing.sheet, drawing.chance
    y = drawing.title_with_number(65, 50) if chance.random() < 0.6 else drawing.title(65, 50)
    y = drawing.pairs_beside(70, y + 6, gap=60)
    for name, party_ in (("seller", drawing.seller), ("buyer", drawing.buyer)):
        sheet.put(70, y + 12, drawing.label(name), drawing.size + 2)
        y = sheet.lines(70, y + 30, party_.lines(), drawing.size)
    if chance.random() < 0.5:
        y = drawing.id_block(70, y + 8)
    return y + 14


def plain(drawing):
    """A simple letter: everything below each other, the address of the seller on the right."""
    sheet, chance = drawing.sheet, drawing.chance
    sheet.lines(370, 40, drawing.seller.lines(), drawing.size)
    sheet.lines(55, 110, drawing.buyer.lines(), drawing.size)
    y = drawing.title_with_number(55, 190) if chance.random() < 0.5 else drawing.title(55, 190, 12)
    return drawing.pairs_inline(55, y + 6) + 12


def boxed(drawing):
    """The buyer on the right, the facts on the left with their values to the right of them."""
    sheet, chance = drawing.sheet, drawing.chance
    sheet.put(210, 30, drawing.seller.name, 13)
    sheet.put(180, 50, ", ".join(drawing.seller.lines()[1:]), 8)
    sheet.put(330, 100, f"{drawing.label('buyer')}{drawing.colon}", drawing.size)
    bottom = sheet.lines(330, 116, drawing.buyer.lines(), drawing.size)
    y = drawing.title(55, 90, 15)
    y = drawing.pairs_beside(55, y + 4, right=chance.choice([None, 290]))
    return max(y, bottom) + 14


LAYOUTS = {each.__name__: each for each in (letter, sections, strip, listing, plain, boxed)}


def invoice(seed, language, layout=None):
    """Return the invoice of this seed."""
    chance = random.Random(f"{seed}-{language}-{layout}")
    layout = layout or chance.choice(sorted(LAYOUTS))
    seller, buyer = party(chance, language), party(chance, language, is_company=chance.random() < 0.85)
    while buyer.name == seller.name:
        buyer = party(chance, language)
    drawing = Drawing(draft(chance, language), seller, buyer, layout)
    y = LAYOUTS[layout](drawing)
    y = drawing.table(y)
    y = drawing.totals(y)
    drawing.closing(y)
    drawing.footer()
    return drawing.finish(language)
