"""Pages for tests: words with places, from lines of texts and where they begin."""

WIDTH, HEIGHT = 0.01, 0.012
IBAN = "DE89 3704 0044 0532 0130 00"


def line(y, *cells):
    """Return the words of a line. Each cell is a text and its left end."""
    words = []
    for text, x in cells:
        for word in text.split():
            right = x + WIDTH * len(word)
            words.append([word, round(x, 4), round(y, 4), round(right, 4), round(y + HEIGHT, 4)])
            x = right + WIDTH / 2
    return words


def page(*lines, number=1):
    """Return a page. Each line is `(y, cell, …)`."""
    return {"number": number, "words": [word for y, *cells in lines for word in line(y, *cells)]}


def invoice(number="4711", day="05.03.2026", total="1.234,56", net="1.037,45", iban=IBAN, down=0.0):
    """Return an invoice of a sender with labels of its own. `down` moves the totals, as further lines do."""
    return [
        page(
            (0.05, ("Nordlicht Werkstatt e.K.", 0.1)),
            (0.15, ("Anna Beispiel", 0.1)),
            (0.17, ("Musterweg 7", 0.1)),
            (0.25, ("Vorgang", 0.1), ("Ausgestellt", 0.3), ("Bearbeiter", 0.6)),
            (0.27, (number, 0.1), (day, 0.3), ("Frau Nord", 0.6)),
            (0.4, ("1", 0.1), ("Reparatur", 0.2), (net, 0.7)),
            (0.5 + down, ("Nettosumme", 0.5), (net, 0.7)),
            (0.55 + down, ("Bitte zahlen Sie", 0.5), (f"{total} EUR", 0.7)),
            (0.9, ("IBAN:", 0.1), (iban, 0.2)),
        )
    ]
