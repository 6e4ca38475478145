"""Reads FatturaPA, the Italian e-invoice, in its ordinary form.

A file may hold several invoices (FatturaElettronicaBody) of one seller and buyer. The fields and lines of the document
come from the first; a problem names the others.
"""

from decimal import Decimal
from xml.etree.ElementTree import Element

from ade_understanding.einvoice.dates import of_iso
from ade_understanding.einvoice.model import Account, Allowance, Amount, Invoice, Line, Party, Tax, number
from ade_understanding.einvoice.parsing import all_texts, text_of

ROOTS = frozenset({"FatturaElettronica"})
_CREDIT_NOTES = frozenset({"TD04", "TD08"})
_GENERAL = "DatiGenerali/DatiGeneraliDocumento"
_NUMBERS = {
    "order_number": "DatiOrdineAcquisto",
    "contract_number": "DatiContratto",
    "receiving_advice_number": "DatiRicezione",
    "preceding_invoice_number": "DatiFattureCollegate",
}


def read(root: Element) -> Invoice:
    header = root.find("FatturaElettronicaHeader")
    header = Element("missing") if header is None else header
    bodies = root.findall("FatturaElettronicaBody") or [Element("missing")]
    first, *others = (_invoice(header, body, root.get("versione", "")) for body in bodies)
    first.others = others
    return first


def _invoice(header: Element, body: Element, version: str) -> Invoice:
    code = text_of(body, f"{_GENERAL}/TipoDocumento")
    invoice = Invoice(
        "FatturaPA",
        text_of(header, "DatiTrasmissione/FormatoTrasmissione") or version,
        code,
        is_credit_note=code in _CREDIT_NOTES,
        currency=text_of(body, f"{_GENERAL}/Divisa"),
        seller=_party(header.find("CedentePrestatore")),
        buyer=_party(header.find("CessionarioCommittente")),
        tax_representative=_party(header.find("RappresentanteFiscale")),
    )
    _read_general(invoice, body)
    _read_payment(invoice, body)
    _read_totals(invoice, body)
    invoice.lines = [_line(each, invoice.currency) for each in body.iterfind("DatiBeniServizi/DettaglioLinee")]
    return invoice


def _read_general(invoice: Invoice, body: Element) -> None:
    causes = (text_of(each, ".") for each in body.iterfind(f"{_GENERAL}/Causale"))
    invoice.texts |= {
        "invoice_number": text_of(body, f"{_GENERAL}/Numero"),
        "note": "\n".join(filter(None, causes)),
        "delivery_note_number": text_of(body, "DatiGenerali/DatiDDT/NumeroDDT"),
        **{name: text_of(body, f"DatiGenerali/{tag}/IdDocumento") for name, tag in _NUMBERS.items()},
        # The codes of public procurement in Italy.
        "project_number": text_of(body, *(f"DatiGenerali/{tag}/CodiceCUP" for tag in _NUMBERS.values())),
        "tender_number": text_of(body, *(f"DatiGenerali/{tag}/CodiceCIG" for tag in _NUMBERS.values())),
    }
    invoice.dates |= {
        "invoice_date": of_iso(text_of(body, f"{_GENERAL}/Data")),
        "order_date": of_iso(text_of(body, "DatiGenerali/DatiOrdineAcquisto/Data")),
        "preceding_invoice_date": of_iso(text_of(body, "DatiGenerali/DatiFattureCollegate/Data")),
        "delivery_date": of_iso(
            text_of(body, "DatiGenerali/DatiTrasporto/DataOraConsegna", "DatiGenerali/DatiDDT/DataDDT")
        ),
    }


def _read_payment(invoice: Invoice, body: Element) -> None:
    details = body.findall("DatiPagamento/DettaglioPagamento")
    first = details[0] if details else None
    terms = [
        (
            of_iso(text_of(each, "DataScadenzaPagamento")),
            number(text_of(each, "ImportoPagamento"), invoice.currency),
            text_of(each, "ModalitaPagamento"),
        )
        for each in details
    ]
    invoice.texts["payment_means"] = text_of(first, "ModalitaPagamento")
    invoice.texts["payment_terms"] = text_of(body, "DatiPagamento/CondizioniPagamento")
    invoice.texts["payment_reference"] = text_of(first, "CodicePagamento")
    invoice.dates["due_date"] = next((day for day, *_ in terms if day), "")
    invoice.instalments = terms[1:]
    amounts = [amount for _, amount, _ in terms if amount]
    if amounts:
        invoice.amounts["due_amount"] = amounts[0] if len(amounts) == 1 else _sum(amounts, invoice.currency)
        invoice.computed |= {"due_amount"} if len(amounts) > 1 else set()
    accounts: dict[str, Account] = {}
    for each in details:
        if iban := text_of(each, "IBAN").replace(" ", ""):
            accounts.setdefault(iban, Account(iban, "", text_of(each, "Beneficiario"), text_of(each, "BIC")))
    invoice.accounts = list(accounts.values())


def _read_totals(invoice: Invoice, body: Element) -> None:
    currency = invoice.currency
    for each in body.iterfind("DatiBeniServizi/DatiRiepilogo"):
        rate = number(text_of(each, "AliquotaIVA"))
        base = number(text_of(each, "ImponibileImporto"), currency)
        amount = number(text_of(each, "Imposta"), currency)
        invoice.taxes.append(Tax(text_of(each, "Natura"), rate, base, amount, text_of(each, "RiferimentoNormativo")))
    bases, taxes = [tax.base for tax in invoice.taxes if tax.base], [tax.amount for tax in invoice.taxes if tax.amount]
    if invoice.taxes:
        invoice.amounts["net_total"], invoice.amounts["tax_total"] = _sum(bases, currency), _sum(taxes, currency)
        invoice.computed |= {"net_total", "tax_total"}
    if total := number(text_of(body, f"{_GENERAL}/ImportoTotaleDocumento"), currency):
        invoice.amounts["gross_total"] = total
    elif invoice.taxes:
        invoice.amounts["gross_total"] = _sum([*bases, *taxes], currency)
        invoice.computed.add("gross_total")
    if rounding := number(text_of(body, f"{_GENERAL}/Arrotondamento"), currency):
        invoice.amounts["rounding_amount"] = rounding
    # SC is a discount (sconto), MG a surcharge (maggiorazione).
    for each in body.iterfind(f"{_GENERAL}/ScontoMaggiorazione"):
        amount = number(text_of(each, "Importo"), currency)
        invoice.allowances.append(Allowance(text_of(each, "Tipo") == "MG", amount))


def _sum(amounts: list[Amount], currency: str) -> Amount:
    values = [amount.value for amount in amounts if amount.value is not None]
    total = sum(values, Decimal(0)) if len(values) == len(amounts) else None
    return Amount("" if total is None else str(total), total, currency)


def _party(element: Element | None) -> Party:
    if element is None:
        return Party()
    registry = element.find("DatiAnagrafici")
    people = filter(None, (text_of(registry, "Anagrafica/Nome"), text_of(registry, "Anagrafica/Cognome")))
    country = text_of(registry, "IdFiscaleIVA/IdPaese")
    code = text_of(registry, "IdFiscaleIVA/IdCodice")
    streets = (text_of(element, "Sede/Indirizzo"), text_of(element, "Sede/NumeroCivico"))
    town = (text_of(element, "Sede/CAP"), text_of(element, "Sede/Comune"), text_of(element, "Sede/Provincia"))
    lines = (" ".join(filter(None, streets)), " ".join(filter(None, town)))
    return Party(
        name=text_of(registry, "Anagrafica/Denominazione") or " ".join(people),
        registration=text_of(element, "IscrizioneREA/NumeroREA"),
        address=tuple(filter(None, lines)),
        country=text_of(element, "Sede/Nazione"),
        vat_id=f"{country}{code}" if code else "",
        tax_number=text_of(registry, "CodiceFiscale"),
        phone=text_of(element, "Contatti/Telefono"),
        fax=text_of(element, "Contatti/Fax"),
        email=text_of(element, "Contatti/Email"),
    )


def _line(element: Element, currency: str) -> Line:
    return Line(
        position=text_of(element, "NumeroLinea"),
        article=text_of(element, "CodiceArticolo/CodiceValore"),
        description=text_of(element, "Descrizione"),
        quantity=number(text_of(element, "Quantita")),
        unit=text_of(element, "UnitaMisura"),
        unit_price=number(text_of(element, "PrezzoUnitario"), currency),
        tax_category=text_of(element, "Natura"),
        tax_rate=number(text_of(element, "AliquotaIVA")),
        amount=number(text_of(element, "PrezzoTotale"), currency),
        allowances=[
            Allowance(text_of(each, "Tipo") == "MG", number(text_of(each, "Importo"), currency))
            for each in element.iterfind("ScontoMaggiorazione")
        ],
        period_start=of_iso(text_of(element, "DataInizioPeriodo")),
        period_end=of_iso(text_of(element, "DataFinePeriodo")),
        leaves=[text for _, text in all_texts(element)],
    )
