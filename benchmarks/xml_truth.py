"""Reads the values of e-invoices by plain paths, as the truth for the benchmark. Not ADE's reader, on purpose."""

import re
import xml.etree.ElementTree as ET
from decimal import Decimal

LINE = "line_items."
# The element that holds a value, from the root. The first path with a text counts.
_AGREEMENT = ("ApplicableHeaderTradeAgreement", "ApplicableSupplyChainTradeAgreement")
_CII = {
    "invoice_number": ["ExchangedDocument/ID", "HeaderExchangedDocument/ID"],
    "invoice_date": [".//IssueDateTime/DateTimeString"],
    "due_date": [".//DueDateDateTime/DateTimeString"],
    "delivery_date": [
        "*/ApplicableHeaderTradeDelivery/ActualDeliverySupplyChainEvent//DateTimeString",
        "*/ApplicableSupplyChainTradeDelivery/ActualDeliverySupplyChainEvent//DateTimeString",
    ],
    "period_start": ["*/*/BillingSpecifiedPeriod/StartDateTime/DateTimeString"],
    "period_end": ["*/*/BillingSpecifiedPeriod/EndDateTime/DateTimeString"],
    "order_number": [
        f"*/{each}/BuyerOrderReferencedDocument/{name}" for each in _AGREEMENT for name in ("ID", "IssuerAssignedID")
    ],
    "contract_number": [
        f"*/{each}/ContractReferencedDocument/{name}" for each in _AGREEMENT for name in ("ID", "IssuerAssignedID")
    ],
    "customer_number": [f"*/{each}/BuyerTradeParty/ID" for each in _AGREEMENT],
    "seller": [f"*/{each}/SellerTradeParty/Name" for each in _AGREEMENT],
    "buyer": [f"*/{each}/BuyerTradeParty/Name" for each in _AGREEMENT],
    "vat_id": [".//SellerTradeParty/SpecifiedTaxRegistration/ID[@schemeID='VA']"],
    "tax_number": [".//SellerTradeParty/SpecifiedTaxRegistration/ID[@schemeID='FC']"],
    "buyer_vat_id": [".//BuyerTradeParty/SpecifiedTaxRegistration/ID[@schemeID='VA']"],
    "iban": [".//PayeePartyCreditorFinancialAccount/IBANID"],
    "bic": [".//PayeeSpecifiedCreditorFinancialInstitution/BICID"],
    "payment_terms": [".//SpecifiedTradePaymentTerms/Description"],
    "currency": [".//InvoiceCurrencyCode"],
    "net_total": ["*/*/*/TaxBasisTotalAmount"],
    "tax_total": ["*/*/*/TaxTotalAmount"],
    "gross_total": ["*/*/*/GrandTotalAmount"],
    "prepaid_amount": ["*/*/*/TotalPrepaidAmount"],
    "due_amount": ["*/*/*/DuePayableAmount"],
}
_SUPPLIER, _CUSTOMER = "AccountingSupplierParty/Party", "AccountingCustomerParty/Party"
_UBL = {
    "invoice_number": ["ID"],
    "invoice_date": ["IssueDate"],
    "due_date": ["DueDate", "PaymentMeans/PaymentDueDate"],
    "delivery_date": ["Delivery/ActualDeliveryDate"],
    "period_start": ["InvoicePeriod/StartDate"],
    "period_end": ["InvoicePeriod/EndDate"],
    "order_number": ["OrderReference/ID"],
    "contract_number": ["ContractDocumentReference/ID"],
    "customer_number": [f"{_CUSTOMER}/PartyIdentification/ID"],
    "seller": [f"{_SUPPLIER}/PartyLegalEntity/RegistrationName", f"{_SUPPLIER}/PartyName/Name"],
    "buyer": [f"{_CUSTOMER}/PartyLegalEntity/RegistrationName", f"{_CUSTOMER}/PartyName/Name"],
    "vat_id": [f"{_SUPPLIER}/PartyTaxScheme/TaxScheme[ID='VAT']/../CompanyID"],
    "iban": ["PaymentMeans/PayeeFinancialAccount/ID"],
    "bic": ["PaymentMeans/PayeeFinancialAccount/FinancialInstitutionBranch/ID"],
    "payment_terms": ["PaymentTerms/Note"],
    "currency": ["DocumentCurrencyCode"],
    "net_total": ["LegalMonetaryTotal/TaxExclusiveAmount"],
    "tax_total": ["TaxTotal/TaxAmount"],
    "gross_total": ["LegalMonetaryTotal/TaxInclusiveAmount"],
    "prepaid_amount": ["LegalMonetaryTotal/PrepaidAmount"],
    "due_amount": ["LegalMonetaryTotal/PayableAmount"],
}
_HEADER, _BODY = "FatturaElettronicaHeader", "FatturaElettronicaBody"
_FATTURA = {
    "invoice_number": [f"{_BODY}/DatiGenerali/DatiGeneraliDocumento/Numero"],
    "invoice_date": [f"{_BODY}/DatiGenerali/DatiGeneraliDocumento/Data"],
    "due_date": [f"{_BODY}/DatiPagamento/DettaglioPagamento/DataScadenzaPagamento"],
    "order_number": [f"{_BODY}/DatiGenerali/DatiOrdineAcquisto/IdDocumento"],
    "contract_number": [f"{_BODY}/DatiGenerali/DatiContratto/IdDocumento"],
    "seller": [f"{_HEADER}/CedentePrestatore/DatiAnagrafici/Anagrafica/Denominazione"],
    "buyer": [f"{_HEADER}/CessionarioCommittente/DatiAnagrafici/Anagrafica/Denominazione"],
    "currency": [f"{_BODY}/DatiGenerali/DatiGeneraliDocumento/Divisa"],
    "iban": [f"{_BODY}/DatiPagamento/DettaglioPagamento/IBAN"],
}
_CII_LINE = {
    "position": ["AssociatedDocumentLineDocument/LineID"],
    "article": ["SpecifiedTradeProduct/SellerAssignedID"],
    "description": ["SpecifiedTradeProduct/Name"],
    "quantity": ["*/BilledQuantity"],
    "unit_price": ["*/NetPriceProductTradePrice/ChargeAmount"],
    "tax_rate": ["*/ApplicableTradeTax/RateApplicablePercent", "*/ApplicableTradeTax/ApplicablePercent"],
    "amount": ["*/*/LineTotalAmount"],
}
_UBL_LINE = {
    "position": ["ID"],
    "article": ["Item/SellersItemIdentification/ID"],
    "description": ["Item/Name"],
    "quantity": ["InvoicedQuantity", "CreditedQuantity"],
    "unit_price": ["Price/PriceAmount"],
    "tax_rate": ["Item/ClassifiedTaxCategory/Percent"],
    "amount": ["LineExtensionAmount"],
}
_FATTURA_LINE = {
    "position": ["NumeroLinea"],
    "article": ["CodiceArticolo/CodiceValore"],
    "description": ["Descrizione"],
    "quantity": ["Quantita"],
    "unit_price": ["PrezzoUnitario"],
    "tax_rate": ["AliquotaIVA"],
    "amount": ["PrezzoTotale"],
}
_TERMS = ("*/*/SpecifiedTradePaymentTerms/Description", "PaymentTerms/Note")
_DAY = re.compile(r"(\d{4})(\d{2})(\d{2})")


def truth(data: bytes) -> tuple[dict[str, str], list[dict[str, str]]]:
    """Return the values of an e-invoice by the names of ADE's fields, and the cells of each line by column."""
    root = ET.fromstring(data)  # noqa: S314  # files that the person who measures has chosen
    _strip(root)
    kind = root.tag
    if kind in ("Invoice", "CreditNote"):
        header, line, lines, taxes = _UBL, _UBL_LINE, "InvoiceLine", _ubl_taxes(root)
        lines = "CreditNoteLine" if kind == "CreditNote" else lines
    elif kind == "FatturaElettronica":
        header, line, lines, taxes = _FATTURA, _FATTURA_LINE, f"{_BODY}/DatiBeniServizi/DettaglioLinee", {}
        if (first := root.find(_BODY)) is not None:
            taxes = _fattura_taxes(first)
    else:
        header, line, lines = _CII, _CII_LINE, ".//IncludedSupplyChainTradeLineItem"
        taxes = _cii_taxes(root)
    values = {name: value for name, paths in header.items() if (value := _first(root, paths))}
    # A document may have several terms of payment.
    if all_terms := [text for path in _TERMS for each in root.iterfind(path) if (text := (each.text or "").strip())]:
        values["payment_terms"] = "\n".join(all_terms)
    body = root.find(_BODY)
    rows = [
        {column: value for column, paths in line.items() if (value := _first(each, paths))}
        for each in root.iterfind(lines)
        # The first invoice of a file counts.
        if body is None or each in body.iterfind("DatiBeniServizi/DettaglioLinee")
    ]
    # A line of ZUGFeRD 1 without an amount or a quantity is only a remark.
    return values | taxes, [row for row in rows if "amount" in row or "quantity" in row]


def element_of(root: ET.Element, name: str) -> ET.Element | None:
    """Return the element that gives a value, for a Cross Industry Invoice. The names of its elements are changed."""
    namespaces = {element: element.tag for element in root.iter() if isinstance(element.tag, str)}
    _strip(root)
    found = None
    if name.startswith(LINE):
        paths, starts = _CII_LINE[name.removeprefix(LINE)], root.findall(".//IncludedSupplyChainTradeLineItem")
    else:
        paths, starts = _CII.get(name, []), [root]
    if name.startswith(("tax_base_", "tax_amount_")):
        tag = "BasisAmount" if name.startswith("tax_base_") else "CalculatedAmount"
        taxes = root.findall("*/*/ApplicableTradeTax")
        rate = name.rpartition("_base_" if "base" in name else "_amount_")[2]
        starts, paths = [tax for tax in taxes if rate == _rate_of(tax)], [tag]
    for start in starts:
        found = found if found is not None else _first_element(start, paths)
    for element, tag_ in namespaces.items():
        element.tag = tag_
    return found


def _first(element: ET.Element, paths: list[str]) -> str | None:
    if (found := _first_element(element, paths)) is None:
        return None
    text = (found.text or "").strip()
    return _DAY.sub(r"\1-\2-\3", text) if found.get("format") == "102" else text


def _first_element(element: ET.Element, paths: list[str]) -> ET.Element | None:
    for path in paths:
        for each in element.iterfind(path):
            if (each.text or "").strip():
                return each
    return None


def _rate_of(tax: ET.Element) -> str:
    rate = _first(tax, ["RateApplicablePercent", "ApplicablePercent"]) or ""
    return _rated("", rate).lstrip("_")


def _strip(root: ET.Element) -> None:
    """Remove the namespaces from the names of all elements."""
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2] if isinstance(element.tag, str) else "comment"


def _cii_taxes(root: ET.Element) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for tax in root.iterfind("*/*/ApplicableTradeTax"):
        rate = _first(tax, ["RateApplicablePercent", "ApplicablePercent"])
        for name, path in (("tax_base", "BasisAmount"), ("tax_amount", "CalculatedAmount")):
            if rate and (value := _first(tax, [path])):
                found.setdefault(_rated(name, rate), []).append(value)
    return _added(found)


def _ubl_taxes(root: ET.Element) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for tax in root.iterfind("TaxTotal/TaxSubtotal"):
        rate = _first(tax, ["TaxCategory/Percent"])
        for name, path in (("tax_base", "TaxableAmount"), ("tax_amount", "TaxAmount")):
            if rate and (value := _first(tax, [path])):
                found.setdefault(_rated(name, rate), []).append(value)
    return _added(found)


def _fattura_taxes(body: ET.Element) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for tax in body.iterfind("DatiBeniServizi/DatiRiepilogo"):
        rate = _first(tax, ["AliquotaIVA"])
        for name, path in (("tax_base", "ImponibileImporto"), ("tax_amount", "Imposta")):
            if rate and (value := _first(tax, [path])):
                found.setdefault(_rated(name, rate), []).append(value)
                found.setdefault("net_total" if name == "tax_base" else "tax_total", []).append(value)
    return _added(found)


def _added(found: dict[str, list[str]]) -> dict[str, str]:
    """Add the categories of each rate."""
    return {name: str(sum(map(Decimal, values))) for name, values in found.items()}


def _rated(name: str, rate: str) -> str:
    plain = rate.rstrip("0").rstrip(".") if "." in rate else rate
    return f"{name}_{plain.replace('.', '_')}"
