"""Invoices in different layouts. Positions are in millimetres from the top left corner."""

import io

import pypdfium2
import pypdfium2.raw as pdfium
from fpdf import FPDF

IBAN_DE = "DE89 3704 0044 0532 0130 00"
IBAN_GB = "GB82 WEST 1234 5698 7654 32"
IBAN_NL = "NL91 ABNA 0417 1643 00"
IBAN_CH = "CH93 0076 2011 6238 5295 7"
IBAN_FR = "FR14 2004 1010 0505 0001 3M02 606"

IBAN_IT = "IT60 X054 2811 1010 0000 0123 456"


class Sheet:
    def __init__(self, font="Helvetica", order=1):
        self.pdf = FPDF()
        self.pdf.core_fonts_encoding = "windows-1252"
        self.pdf.set_auto_page_break(False)
        self.font, self.order, self._pending = font, order, []
        self.pdf.add_page()

    def text(self, x, y, text, size=10, style=""):
        self._pending.append((x, y, text, size, style))

    def right(self, x, y, text, size=10, style=""):
        self.pdf.set_font(self.font, style, size)
        self.text(x - self.pdf.get_string_width(text), y, text, size, style)

    def lines(self, x, y, *texts, size=10, step=5.0):
        for place, text in enumerate(texts):
            self.text(x, y + place * step, text, size)

    def pairs(self, x, across, y, pairs, step=6.0):
        for place, (label, value) in enumerate(pairs):
            self.text(x, y + place * step, label)
            self.right(across, y + place * step, value)

    def table(self, y, columns, rows, step=7.0):
        """Draw a table; each column has a heading, a position and whether it is right-aligned."""
        for place, row in enumerate([[head for head, _, _ in columns], *rows]):
            for (_, x, is_right), text in zip(columns, row, strict=True):
                (self.right if is_right else self.text)(x, y + place * step, text)

    def page(self):
        self._draw()
        self.pdf.add_page()

    def _draw(self):
        for x, y, text, size, style in self._pending[:: self.order]:
            self.pdf.set_font(self.font, style, size)
            self.pdf.text(x, y, text)
        self._pending = []

    def bytes(self):
        self._draw()
        return bytes(self.pdf.output())


COLUMNS = [("Description", 20, False), ("Qty", 120, True), ("Unit price", 155, True), ("Amount", 190, True)]
SPALTEN = [
    ("Pos.", 20, False), ("Bezeichnung", 32, False), ("Menge", 120, True), ("Einzelpreis", 155, True), ("Gesamt", 190,
    True),
]  # fmt: skip


def english_classic():
    sheet = Sheet()
    sheet.text(20, 25, "Aldergate Orchards Ltd", 16, "B")
    sheet.lines(20, 32, "14 Orchard Lane", "Little Wendover LW1 2AB", "Phone: 0117 496 0123", "VAT no. GB980780684")
    sheet.text(150, 25, "INVOICE", 20, "B")
    sheet.pairs(
        120, 190, 40,
        [("Customer no.:", "30417"), ("Order no.:", "PO-88213"), ("Invoice no.:", "AO-2026-0117"),
         ("Invoice date:", "18 November 2026"), ("Due date:", "2 December 2026")],
    )  # fmt: skip
    sheet.lines(20, 65, "Bill to:", "Fennimore & Daughters", "3 Mill Road", "Oakbridge OB4 7QT")
    sheet.table(100, COLUMNS, [["Apples, box", "3", "12.50", "37.50"], ["Cider, bottle", "10", "4.20", "42.00"]])
    sheet.pairs(135, 190, 130, [("Net total", "79.50"), ("VAT 20 %", "15.90"), ("Total due", "£ 95.40")])
    sheet.text(20, 280, f"IBAN {IBAN_GB}   Company no. 07654321   Page 1 of 1", 8)
    return sheet.bytes()


def german_letter():
    sheet = Sheet()
    sheet.text(20, 45, "Elbwerk Tischlerei GmbH · Holzgasse 7 · 01069 Dresden", 7)
    sheet.lines(20, 52, "Kanzlei Brandt und Söhne", "Frau Ilse Brandt", "Am Ring 12", "04109 Leipzig")
    sheet.pairs(
        130, 190, 52,
        [("Kundennummer", "10482"), ("Auftragsnummer", "A-55120"), ("Rechnungsnummer", "RE-2026/0815"),
         ("Rechnungsdatum", "18.11.2026"), ("Lieferdatum", "12.11.2026"), ("Telefon", "0351 4960 118")],
    )  # fmt: skip
    sheet.text(20, 100, "Rechnung", 16, "B")
    sheet.text(20, 108, "Sehr geehrte Frau Brandt, wir berechnen wie vereinbart:")
    sheet.table(
        120, SPALTEN,
        [["1", "Regal Eiche, 240 cm", "2", "480,00", "960,00"], ["2", "Montage", "4,5 Std.", "62,00", "279,00"]],
    )  # fmt: skip
    sheet.pairs(
        130, 190, 150,
        [("Nettobetrag", "1.239,00 €"), ("zzgl. 19 % MwSt.", "235,41 €"), ("Gesamtbetrag", "1.474,41 €")],
    )  # fmt: skip
    sheet.text(20, 180, "Zahlbar bis 02.12.2026 ohne Abzug. Bitte geben Sie die Rechnungsnummer RE-2026/0815 an.")
    sheet.lines(
        20, 275, "Elbwerk Tischlerei GmbH   Amtsgericht Dresden HRB 21877   Geschäftsführer: Jan Ohlsen",
        f"USt-IdNr. DE136695976   IBAN {IBAN_DE}   BIC COBADEFFXXX", size=7, step=4,
    )  # fmt: skip
    return sheet.bytes()


def american_columns():
    """The labels are in a row, with their values below."""
    sheet = Sheet("Times")
    sheet.text(20, 25, "Bluestone Print Inc.", 18, "B")
    sheet.lines(20, 32, "500 Harbor Street", "Portland, OR 97201", "(503) 555-0142")
    for x, label, value in [
        (20, "Invoice #", "100482"), (60, "Date", "11/18/2026"), (100, "Customer ID", "C-7719"), (140, "Due date",
        "12/18/2026"),
    ]:  # fmt: skip
        sheet.text(x, 60, label, 9, "B")
        sheet.text(x, 66, value)
    sheet.lines(20, 80, "Bill To", "Maple Row Bakery LLC", "12 Pine Avenue", "Salem, OR 97301")
    sheet.lines(120, 80, "Ship To", "Maple Row Bakery, Dock 2", "14 Pine Avenue", "Salem, OR 97301")
    columns = [("Qty", 20, False), ("Description", 40, False), ("Rate", 150, True), ("Amount", 190, True)]
    sheet.table(115, columns, [["500", "Business cards", "0.12", "60.00"], ["2", "Banner 3 x 6 ft", "89.50", "179.00"]])
    sheet.pairs(140, 190, 150, [("Subtotal", "$239.00"), ("Sales tax 8.5%", "$20.32"), ("Balance due", "$259.32")])
    return sheet.bytes()


def german_two_rates():
    """The number is in the title, the date follows the town, there are two tax rates, and the small print is full of
    numbers.
    """
    sheet = Sheet("Times")
    sheet.right(190, 20, "Naturkost Weidner e.K.", 14, "B")
    sheet.right(190, 26, "Marktplatz 3, 99423 Weimar", 9)
    sheet.right(190, 31, "Tel. 03643 778812, Fax 03643 778813", 9)
    sheet.lines(25, 50, "Pension Seeblick", "Uferweg 21", "17192 Waren")
    sheet.right(190, 85, "Weimar, 18. November 2026")
    sheet.text(25, 95, "Rechnung Nr. 2026-1184", 13, "B")
    sheet.text(25, 102, "Ihre Kundennummer: 774201   Ihre Bestellung: 4500118823 vom 09.11.2026", 8)
    spalten = [
        ("Artikel", 25, False),
        ("Anzahl", 110, True),
        ("Preis", 140, True),
        ("MwSt", 160, True),
        ("Betrag", 190, True),
    ]
    rows = [["Honig 500 g", "20", "6,50", "7 %", "130,00"], ["Kerzen", "12", "4,00", "19 %", "48,00"]]
    sheet.table(112, spalten, rows)
    sheet.pairs(
        120, 190, 140,
        [("Summe netto", "178,00 EUR"), ("MwSt 7 % auf 130,00 EUR", "9,10 EUR"), ("MwSt 19 % auf 48,00 EUR",
        "9,12 EUR"),
         ("Rechnungsbetrag", "196,22 EUR")],
    )  # fmt: skip
    sheet.text(25, 170, "Zahlungsziel: 14 Tage netto. In Worten: einhundertsechsundneunzig 22/100 Euro.")
    sheet.lines(
        25, 270, "Steuernummer 162/245/11804   USt-IdNr. DE 136695976   Amtsgericht Jena HRA 103377",
        f"Musterbank Weimar   IBAN {IBAN_DE}   Verwendungszweck: 2026-1184 / 774201", size=7, step=4,
    )  # fmt: skip
    return sheet.bytes()


def french():
    sheet = Sheet()
    sheet.text(20, 25, "Atelier Verneuil SARL", 15, "B")
    sheet.lines(20, 31, "8 rue des Lilas", "69002 Lyon", "Tél. 04 72 00 11 22")
    sheet.lines(120, 50, "Facturé à", "Hôtel du Pont SAS", "2 quai Nord", "71000 Mâcon")
    sheet.lines(
        20, 60, "Facture n° F-2026-118", "Date de facture : 18 novembre 2026", "Date d'échéance : 18/12/2026", step=6
    )
    sheet.text(20, 80, "N° client : 9914   Commande : 2026/771")
    colonnes = [("Désignation", 20, False), ("Qté", 110, True), ("Prix unitaire", 150, True), ("Montant", 190, True)]
    sheet.table(95, colonnes, [["Rideaux sur mesure", "4", "280,00", "1 120,00"], ["Pose", "1", "114,56", "114,56"]])
    sheet.pairs(130, 190, 130, [("Total HT", "1 234,56 €"), ("TVA 20 %", "246,91 €"), ("Total TTC", "1 481,47 €")])
    sheet.text(20, 280, f"SIRET 303 265 045 00017   N° TVA FR40303265045   IBAN {IBAN_FR}", 8)
    return sheet.bytes()


def dutch_without_head():
    """The table has no heading; the number is far below."""
    sheet = Sheet("Courier")
    sheet.text(20, 20, "Fietsenmaker Van Dael B.V.", 13, "B")
    sheet.lines(20, 27, "Kerkstraat 9", "3511 LX Utrecht", "KvK-nummer: 30112233")
    sheet.lines(20, 50, "Bakkerij De Molen", "Dorpsplein 4", "3401 AB IJsselstein")
    sheet.lines(20, 75, "2  Binnenband 28 inch", "1  Onderhoudsbeurt", step=6)
    for y, price, total in [(75, "7,25", "14,50"), (81, "65,00", "65,00")]:
        sheet.right(150, y, price)
        sheet.right(190, y, total)
    sheet.pairs(110, 190, 100, [("Subtotaal", "79,50"), ("BTW 21%", "16,70"), ("Totaal te betalen", "€ 96,20")])
    sheet.lines(
        20,
        130,
        "Klantnummer   : 5567",
        "Factuurnummer : 2026.0419",
        "Factuurdatum  : 18-11-2026",
        "Vervaldatum   : 02-12-2026",
    )
    sheet.text(20, 160, f"BTW-nummer NL004495445B01   IBAN {IBAN_NL}", 9)
    return sheet.bytes()


def two_pages():
    """There are items on both pages, and totals on the second."""
    sheet = Sheet()
    sheet.text(20, 20, "Northwind Cables Limited", 14, "B")
    sheet.lines(20, 27, "Unit 4, Dock Road", "Hull HU1 3DZ")
    sheet.lines(
        130,
        20,
        "Tax invoice no: 77120",
        "Date of issue: 2026-11-18",
        "Payment due: 2026-12-18",
        "Your reference: 2026-55531",
        step=6,
    )
    sheet.lines(20, 50, "Invoice to:", "Harbour Lights plc", "1 Quay Street", "Hull HU2 8AA")
    rows = [[f"Cable type {number}, 100 m", "2", "50.00", "100.00"] for number in range(1, 21)]
    sheet.table(80, COLUMNS, rows, step=8)
    sheet.text(20, 285, "Invoice 77120, page 1 of 2. Carried forward: 2,000.00", 8)
    sheet.page()
    sheet.table(
        30, COLUMNS, [["Drum, returnable", "5", "30.00", "150.00"], ["Delivery", "1", "50.00", "50.00"]], step=8
    )
    sheet.pairs(130, 190, 70, [("Subtotal", "2,200.00"), ("VAT @ 20%", "440.00"), ("Grand total GBP", "2,640.00")])
    sheet.text(20, 100, f"IBAN {IBAN_GB}")
    sheet.text(20, 285, "Invoice 77120, page 2 of 2", 8)
    return sheet.bytes()


def modern_cards():
    """Small labels are above large values, the total comes first, and another date disambiguates the day."""
    sheet = Sheet()
    sheet.text(20, 20, "AMOUNT DUE", 7)
    sheet.text(20, 28, "EUR 1,428.00", 20, "B")
    for x, label, value in [(90, "INVOICE NO.", "INV-7781"), (130, "ISSUED", "05/06/2026"), (165, "DUE", "18/06/2026")]:
        sheet.text(x, 20, label, 7)
        sheet.text(x, 26, value, 11)
    sheet.lines(20, 50, "From", "Studio Lantern GmbH", "Torstraße 80", "10119 Berlin", "DE136695976")
    sheet.lines(110, 50, "To", "Kestrel Media B.V.", "Herengracht 11", "1015 BA Amsterdam", "NL004495445B01")
    columns = [("Service", 20, False), ("Hours", 120, True), ("Rate", 150, True), ("Total", 190, True)]
    sheet.table(
        95, columns, [["Design of the autumn issue", "12", "75.00", "900.00"], ["Typesetting", "6", "50.00", "300.00"]]
    )
    sheet.pairs(150, 190, 125, [("Net", "1,200.00"), ("VAT (19%)", "228.00"), ("Total", "1,428.00")])
    sheet.text(20, 270, f"Questions? +49 30 901820 · hello@lantern.example · {IBAN_DE}", 8)
    return sheet.bytes()


def swiss_row_of_totals():
    """Net, tax and gross are side by side with their amounts below; the file draws them in reverse order."""
    sheet = Sheet(order=-1)
    sheet.text(20, 20, "Alpenblick Sanitär AG", 14, "B")
    sheet.lines(20, 26, "Seestrasse 40", "8002 Zürich", "CHE-107.787.577 MWST")
    sheet.lines(120, 45, "Genossenschaft Sonnenhof", "Hofweg 3", "8400 Winterthur")
    sheet.lines(
        20, 70, "Rechnungs-Nr.: 260418", "Datum: 18.11.2026", "Zahlbar innert 30 Tagen", "Objekt-Nr.: 118", step=6
    )
    spalten = [("Leistung", 20, False), ("Stunden", 120, True), ("Stundensatz", 155, True), ("Betrag", 190, True)]
    sheet.table(105, spalten, [["Boiler ersetzen", "8", "120.00", "960.00"], ["Entkalken", "2.5", "110.00", "275.00"]])
    for x, label, value in [
        (60, "Netto CHF", "1'235.00"),
        (110, "MwSt 8.1 % CHF", "100.05"),
        (165, "Brutto CHF", "1'335.05"),
    ]:
        sheet.text(x, 140, label, 9, "B")
        sheet.text(x, 146, value)
    sheet.text(20, 270, f"IBAN {IBAN_CH}   Tel. 044 123 45 67", 8)
    return sheet.bytes()


def reverse_charge():
    """There is no tax, an hourly rate, and other numbers next to the invoice number."""
    sheet = Sheet("Times")
    sheet.text(120, 25, "Ines Falkner Consulting", 13, "B")
    sheet.lines(120, 31, "Lindenweg 5", "1010 Wien", "UID: ATU13585627")
    sheet.lines(20, 50, "Customer", "Ravn & Holm A/S", "Havnegade 2", "1058 København", "Your VAT ID: DK13585628")
    sheet.lines(20, 85, "Project 4410-22    Contract no. 2025-9    Invoice number 2026-31    Quotation no. Q-118")
    sheet.lines(20, 92, "Date: November 18, 2026    Service date: October 2026    Due by: December 3, 2026")
    sheet.table(
        110, COLUMNS, [["Consulting, on site", "16", "145.00", "2,320.00"], ["Travel", "1", "310.40", "310.40"]]
    )
    sheet.pairs(130, 190, 135, [("Subtotal", "EUR 2,630.40"), ("VAT 0%", "EUR 0.00"), ("Total amount", "EUR 2,630.40")])
    sheet.text(20, 160, "Reverse charge: the recipient owes the tax. Please quote invoice number and customer number.")
    sheet.text(20, 170, "IBAN AT61 1904 3002 3457 3201, BIC BKAUATWW")
    return sheet.bytes()


def turned(content):
    """Rotate the pages like a scanner that was fed sideways: they look the same, but the content is turned."""
    document = pypdfium2.PdfDocument(content)
    for page in document:
        width, height = page.get_size()
        pdfium.FPDFPage_TransFormWithClip(
            page, pdfium.FS_MATRIX(0, 1, -1, 0, height, 0), pdfium.FS_RECTF(0, width, height, 0)
        )
        page.set_mediabox(0, 0, height, width)
        page.set_rotation(90)
    saved = io.BytesIO()
    document.save(saved)
    return saved.getvalue()


def scanned():
    """A page with an image and no text."""
    pdf = FPDF()
    pdf.add_page()
    pdf.rect(20, 20, 100, 100, style="F")
    return bytes(pdf.output())


# What stands on each, and the number of its line items. A due date is here only if it is printed.
EXPECTED = {
    english_classic: {
        "invoice_number": "AO-2026-0117", "invoice_date": "2026-11-18", "gross_total": "95.40", "currency": "GBP",
        "due_date": "2026-12-02", "net_total": "79.50", "tax_total": "15.90", "seller": "Aldergate Orchards Ltd",
        "buyer": "Fennimore & Daughters", "iban": "GB82WEST12345698765432", "vat_id": "GB980780684",
        "line_items": 2,
    },
    german_letter: {
        "invoice_number": "RE-2026/0815", "invoice_date": "2026-11-18", "gross_total": "1474.41", "currency": "EUR",
        "due_date": "2026-12-02", "net_total": "1239.00", "tax_total": "235.41",
        "seller": "Elbwerk Tischlerei GmbH",
        "buyer": "Kanzlei Brandt und Söhne", "iban": "DE89370400440532013000", "vat_id": "DE136695976",
        "line_items": 2,
    },
    american_columns: {
        "invoice_number": "100482", "invoice_date": "2026-11-18", "gross_total": "259.32", "currency": "USD",
        "due_date": "2026-12-18", "net_total": "239.00", "tax_total": "20.32", "seller": "Bluestone Print Inc.",
        "buyer": "Maple Row Bakery LLC", "line_items": 2,
    },
    german_two_rates: {
        "invoice_number": "2026-1184", "invoice_date": "2026-11-18", "gross_total": "196.22", "currency": "EUR",
        "net_total": "178.00", "tax_total": "18.22", "seller": "Naturkost Weidner e.K.",
        "buyer": "Pension Seeblick", "vat_id": "DE136695976", "line_items": 2,
    },
    french: {
        "invoice_number": "F-2026-118", "invoice_date": "2026-11-18", "gross_total": "1481.47", "currency": "EUR",
        "due_date": "2026-12-18", "net_total": "1234.56", "tax_total": "246.91", "seller": "Atelier Verneuil SARL",
        "buyer": "Hôtel du Pont SAS", "iban": "FR1420041010050500013M02606", "vat_id": "FR40303265045",
        "line_items": 2,
    },
    dutch_without_head: {
        "invoice_number": "2026.0419", "invoice_date": "2026-11-18", "gross_total": "96.20", "currency": "EUR",
        "due_date": "2026-12-02", "net_total": "79.50", "tax_total": "16.70",
        "seller": "Fietsenmaker Van Dael B.V.",
        "buyer": "Bakkerij De Molen", "iban": "NL91ABNA0417164300", "vat_id": "NL004495445B01",
        "line_items": 2,
    },
    two_pages: {
        "invoice_number": "77120", "invoice_date": "2026-11-18", "gross_total": "2640.00", "currency": "GBP",
        "due_date": "2026-12-18", "net_total": "2200.00", "tax_total": "440.00",
        "seller": "Northwind Cables Limited",
        "buyer": "Harbour Lights plc", "line_items": 22,
    },
    modern_cards: {
        "invoice_number": "INV-7781", "invoice_date": "2026-06-05", "gross_total": "1428.00", "currency": "EUR",
        "due_date": "2026-06-18", "net_total": "1200.00", "tax_total": "228.00", "seller": "Studio Lantern GmbH",
        "buyer": "Kestrel Media B.V.", "vat_id": "DE136695976", "buyer_vat_id": "NL004495445B01",
        "line_items": 2,
    },
    swiss_row_of_totals: {
        "invoice_number": "260418", "invoice_date": "2026-11-18", "gross_total": "1335.05", "currency": "CHF",
        "net_total": "1235.00", "tax_total": "100.05", "seller": "Alpenblick Sanitär AG",
        "buyer": "Genossenschaft Sonnenhof", "iban": "CH9300762011623852957", "line_items": 2,
    },
    reverse_charge: {
        "invoice_number": "2026-31", "invoice_date": "2026-11-18", "gross_total": "2630.40", "currency": "EUR",
        "due_date": "2026-12-03", "net_total": "2630.40", "tax_total": "0.00", "seller": "Ines Falkner Consulting",
        "buyer": "Ravn & Holm A/S", "vat_id": "ATU13585627", "buyer_vat_id": "DK13585628", "line_items": 2,
    },
}  # fmt: skip
