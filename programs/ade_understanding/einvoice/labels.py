"""The words next to values, by field: they distinguish equal values, and name a value that the page shows instead.

Beginnings of words in English, German, French, Dutch, Spanish, Italian, Portuguese and Polish.
"""

import re

_STEMS = {
    "invoice_number": r"rechnungs?-?\s?(nr|nummer|no|id)|rechnung.{0,30}\bnr|belegn|beleg-n|invoice (no|num|id|#)"
    r"|facture n|n[°ºo] (de )?(la )?(facture|factura)|factuurn|número de factura|factura n|fattura n|numero fattura"
    r"|fatura n|faktura (vat )?n|numer faktury|gutschrift.{0,30}\bnr",
    "invoice_date": r"rechnungsdatum|rechnung.{0,30}\bvom|belegdatum|ausstellungsdatum|invoice date"
    r"|date of (issue|invoice)|issue date|date de (la )?facture|date d.émission|factuurdatum"
    r"|fecha de (la )?(factura|emisi)|data (della )?fattura|data de emiss|data da fatura|data wystawienia",
    "due_date": r"fällig|zahlbar(.{0,40}\bbis)?|zahlungsziel|zahlen bis|\bdue\b|pay(able|ment)? (by|until)|échéance"
    r"|vervaldatum|betalen (voor|vóór)|vencimiento|scadenza|vencimento|termin płatności|termin zapłaty",
    "delivery_date": r"liefer-? ?(datum|und|tag)|lieferung am|leistungsdatum|leistungstag|deliver(y|ed)|date of supply"
    r"|date de livraison|leverdatum|fecha de entrega|data (di )?consegna|data de entrega|data dostawy|data sprzedaży",
    "order_number": r"bestell|auftrag|order|commande|pedido|ordine|encomenda|zamówieni",
    "customer_number": r"kunden-?\s?(nr|nummer|no)|kd\.?-?nr|customer|client n|klantn|n[°ºo] (de )?client|cliente"
    r"|klienta|käufer.{0,30}nummer|nummer",
    "tax_number": r"steuer-?\s?(nr|nummer)|st\.?-?nr|tax (no|num|id)|codice fiscale|\bnif\b|\bnip\b|fiscal",
    "vat_id": r"ust.{0,4}id|umsatzsteuer-?id|vat|tva|btw|\biva\b|\bnif\b|\bnip\b|\buid\b",
    "bic": r"\bbic\b|swift",
    "iban": r"\biban\b",
    "net_total": r"netto(?!preis)|ohne (ust|mwst|umsatz)|steuerbasis|excl|without (tax|vat)|\bnet\b|subtotal|\bht\b"
    r"|hors"
    r"|imponibile|base imponible|neto|líquido|exkl",
    "tax_total": r"steuerbetrag|umsatzsteuer|mehrwertsteuer|\bust\b|mwst|\bvat\b|\btax\b|\btva\b|\bbtw\b|\biva\b",
    "gross_total": r"brutto(?!preis)|inkl|incl|with (tax|vat)|gross|\bttc\b|gesamtbetrag|rechnungsbetrag|rechnungssumme"
    r"|grand total|invoice total|totaal|importe total|totale (fattura|documento)|razem",
    "due_amount": r"zahlbetrag|zu zahlen|zahlen|fällig|offen|amount due|balance|payable|à payer|te betalen|a pagar"
    r"|da pagare|do zapłaty",
    "prepaid_amount": r"anzahlung|vorauszahl|bereits|gezahlt|erhalten|prepaid|paid|deposit|acompte|versé|voorschot"
    r"|anticip|acconto|adiantamento|zaliczk",
    "line_total": r"positionssumme|zwischensumme|summe (der )?position|warenwert|subtotal|sum of lines",
    "allowance_total": r"abschläge|nachlässe|rabatte|allowances?|discounts",
    "charge_total": r"zuschläge|charges?|surcharges",
    "period_start": r"zeitraum( vo[mn])?|für die zeit( vo[mn])?|period|\bvon\b|\bfrom\b",
    "period_end": r"zeitraum|period|\bbis\b|\bto\b|until",
    "seller": r"verkäufer|lieferant|seller|supplier|vendeur|vendedor|fornitore|sprzedawca|rechnungsersteller|\bname\b",
    "buyer": r"käufer|kunde|empfänger|buyer|customer|bill to|acheteur|comprador|cliente|nabywca|\bname\b",
}
# Words that may name other dates too.
_WEAK = {"invoice_date": r"\bdated?\b|\bdatum\b|\bvom\b|\bfecha\b|\bdata\b"}
STRONG = {name: re.compile(stems) for name, stems in _STEMS.items()}
LABELS = STRONG | {name: re.compile(f"{_STEMS[name]}|{stems}") for name, stems in _WEAK.items()}


def is_label(name: str, context: str, *, is_strong: bool = False) -> bool:
    """Return whether the words before a value name this field; with `is_strong`, nothing but this field."""
    label = (STRONG if is_strong else LABELS).get(name)
    # Without hyphens, as in "Leistungs-Datum".
    return label is not None and label.search(context.replace("-", "")) is not None
