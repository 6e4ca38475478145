"""Reads Cross Industry Invoices: Factur-X and ZUGFeRD 2, XRechnung and others in CII, and ZUGFeRD 1."""

from decimal import Decimal
from xml.etree.ElementTree import Element

from ade_understanding.einvoice.dates import of_cii
from ade_understanding.einvoice.model import Account, Allowance, Amount, Invoice, Line, Party, Tax, number
from ade_understanding.einvoice.parsing import all_texts, text_of

ROOTS = frozenset({"CrossIndustryInvoice", "CrossIndustryDocument"})
# Tags of ZUGFeRD 1 come second.
_DOCUMENT = ("ExchangedDocument", "HeaderExchangedDocument")
_CONTEXT = ("ExchangedDocumentContext", "SpecifiedExchangedDocumentContext")
_TRANSACTION = ("SupplyChainTradeTransaction", "SpecifiedSupplyChainTradeTransaction")
_AGREEMENT = ("ApplicableHeaderTradeAgreement", "ApplicableSupplyChainTradeAgreement")
_DELIVERY = ("ApplicableHeaderTradeDelivery", "ApplicableSupplyChainTradeDelivery")
_SETTLEMENT = ("ApplicableHeaderTradeSettlement", "ApplicableSupplyChainTradeSettlement")
_SUMMATION = ("SpecifiedTradeSettlementHeaderMonetarySummation", "SpecifiedTradeSettlementMonetarySummation")
_CREDIT_NOTES = frozenset({"81", "83", "261", "262", "296", "308", "381", "396", "420", "458", "532"})
_NUMBERS = {
    "order_number": "BuyerOrderReferencedDocument",
    "sales_order_number": "SellerOrderReferencedDocument",
    "contract_number": "ContractReferencedDocument",
}
_DELIVERED = {
    "delivery_note_number": ("DespatchAdviceReferencedDocument", "DeliveryNoteReferencedDocument"),
    "receiving_advice_number": ("ReceivingAdviceReferencedDocument",),
}
# Additional documents by the code of their type: a tender, and the object of the invoice.
_ADDITIONAL = {"50": "tender_number", "130": "object_number"}
_TOTALS = {
    "line_total": "LineTotalAmount",
    "charge_total": "ChargeTotalAmount",
    "allowance_total": "AllowanceTotalAmount",
    "net_total": "TaxBasisTotalAmount",
    "rounding_amount": "RoundingAmount",
    "gross_total": "GrandTotalAmount",
    "prepaid_amount": "TotalPrepaidAmount",
    "due_amount": "DuePayableAmount",
}


def read(root: Element) -> Invoice:
    document, context = _child(root, _DOCUMENT), _child(root, _CONTEXT)
    transaction = _child(root, _TRANSACTION)
    agreement, delivery = _child(transaction, _AGREEMENT), _child(transaction, _DELIVERY)
    settlement = _child(transaction, _SETTLEMENT)
    code = text_of(document, "TypeCode")
    invoice = Invoice(
        "CII",
        text_of(context, "GuidelineSpecifiedDocumentContextParameter/ID"),
        code,
        is_credit_note=code in _CREDIT_NOTES,
        currency=text_of(settlement, "InvoiceCurrencyCode"),
    )
    _read_header(invoice, document, context, agreement)
    invoice.seller = _party(agreement.find("SellerTradeParty"))
    invoice.buyer = _party(agreement.find("BuyerTradeParty"))
    invoice.tax_representative = _party(agreement.find("SellerTaxRepresentativeTradeParty"))
    invoice.recipient = _party(delivery.find("ShipToTradeParty"))
    invoice.payee = _party(settlement.find("PayeeTradeParty"))
    _read_delivery(invoice, delivery, settlement)
    _read_payment(invoice, settlement)
    _read_totals(invoice, settlement)
    lines = (_line(each, invoice.currency) for each in transaction.iterfind("IncludedSupplyChainTradeLineItem"))
    # In ZUGFeRD 1, a line without amount and quantity is a remark.
    invoice.lines = [line for line in lines if line.amount or line.quantity or line.unit_price]
    return invoice


def _child(element: Element, names: tuple[str, ...]) -> Element:
    found = (element.find(name) for name in names)
    return next((each for each in found if each is not None), Element("missing"))


def _read_header(invoice: Invoice, document: Element, context: Element, agreement: Element) -> None:
    texts = {
        "invoice_number": text_of(document, "ID"),
        "business_process": text_of(context, "BusinessProcessSpecifiedDocumentContextParameter/ID"),
        "note": "\n".join(filter(None, (text_of(note, "Content") for note in document.iterfind("IncludedNote")))),
        "buyer_reference": text_of(agreement, "BuyerReference"),
        "project_number": text_of(agreement, "SpecifiedProcuringProject/ID"),
    }
    for name, tag in _NUMBERS.items():
        texts[name] = text_of(agreement, f"{tag}/IssuerAssignedID", f"{tag}/ID")
    for each in agreement.iterfind("AdditionalReferencedDocument"):
        if additional := _ADDITIONAL.get(text_of(each, "TypeCode")):
            texts[additional] = text_of(each, "IssuerAssignedID", "ID")
    invoice.texts |= texts
    invoice.dates["invoice_date"] = _day(document, "IssueDateTime")
    invoice.dates["order_date"] = _day(agreement, "BuyerOrderReferencedDocument/FormattedIssueDateTime") or _day(
        agreement, "BuyerOrderReferencedDocument/IssueDateTime"
    )


def _read_delivery(invoice: Invoice, delivery: Element, settlement: Element) -> None:
    for name, tags in _DELIVERED.items():
        invoice.texts[name] = text_of(delivery, *(f"{tag}/{id_}" for tag in tags for id_ in ("IssuerAssignedID", "ID")))
    invoice.dates["delivery_date"] = _day(delivery, "ActualDeliverySupplyChainEvent/OccurrenceDateTime")
    invoice.dates["period_start"] = _day(settlement, "BillingSpecifiedPeriod/StartDateTime")
    invoice.dates["period_end"] = _day(settlement, "BillingSpecifiedPeriod/EndDateTime")
    invoice.texts["preceding_invoice_number"] = text_of(
        settlement, "InvoiceReferencedDocument/IssuerAssignedID", "InvoiceReferencedDocument/ID"
    )
    invoice.dates["preceding_invoice_date"] = _day(settlement, "InvoiceReferencedDocument/FormattedIssueDateTime")


def _read_payment(invoice: Invoice, settlement: Element) -> None:
    means = settlement.findall("SpecifiedTradeSettlementPaymentMeans")
    first = means[0] if means else None
    invoice.texts |= {
        "payment_reference": text_of(settlement, "PaymentReference"),
        "creditor_id": text_of(settlement, "CreditorReferenceID"),
        "payment_means": " ".join(filter(None, (text_of(first, "TypeCode"), text_of(first, "Information")))),
        "card_number": text_of(first, "ApplicableTradeSettlementFinancialCard/ID"),
        "debited_iban": text_of(first, "PayerPartyDebtorFinancialAccount/IBANID").replace(" ", ""),
        "mandate_reference": text_of(settlement, "SpecifiedTradePaymentTerms/DirectDebitMandateID"),
        "accounting_reference": text_of(settlement, "ReceivableSpecifiedTradeAccountingAccount/ID"),
        "tax_currency": text_of(settlement, "TaxCurrencyCode"),
    }
    for each in means:
        account = each.find("PayeePartyCreditorFinancialAccount")
        if account is None:
            continue
        bic = text_of(each, "PayeeSpecifiedCreditorFinancialInstitution/BICID")
        iban, other = text_of(account, "IBANID").replace(" ", ""), text_of(account, "ProprietaryID")
        if iban or other:
            invoice.accounts.append(Account(iban, other, text_of(account, "AccountName"), bic.replace(" ", "")))
    terms = [
        (
            _day(each, "DueDateDateTime"),
            number(text_of(each, "PartialPaymentAmount"), invoice.currency),
            text_of(each, "Description"),
        )
        for each in settlement.iterfind("SpecifiedTradePaymentTerms")
    ]
    invoice.texts["payment_terms"] = "\n".join(filter(None, (text for *_, text in terms)))
    invoice.dates["due_date"] = next((day for day, *_ in terms if day), "")
    invoice.instalments = [each for each in terms if each[0] and each[0] != invoice.dates["due_date"]]


def _read_totals(invoice: Invoice, settlement: Element) -> None:
    currency = invoice.currency
    summation = _child(settlement, _SUMMATION)
    for name, tag in _TOTALS.items():
        if (element := summation.find(tag)) is not None and (amount := _amount(element, currency)):
            invoice.amounts[name] = amount
    totals = [amount for each in summation.iterfind("TaxTotalAmount") if (amount := _amount(each, currency))]
    for amount in totals:
        is_foreign = amount.currency == invoice.texts["tax_currency"] != currency
        invoice.amounts.setdefault("tax_total_in_tax_currency" if is_foreign else "tax_total", amount)
    for each in settlement.iterfind("ApplicableTradeTax"):
        invoice.dates["tax_date"] = invoice.dates.get("tax_date") or _day(each, "TaxPointDate")
        invoice.taxes.append(
            Tax(
                text_of(each, "CategoryCode"),
                _rate(each),
                _found(each, "BasisAmount", currency),
                _found(each, "CalculatedAmount", currency),
                text_of(each, "ExemptionReason") or text_of(each, "ExemptionReasonCode"),
            )
        )
    invoice.allowances = [_allowance(each, currency) for each in settlement.iterfind("SpecifiedTradeAllowanceCharge")]
    for each in settlement.iterfind("SpecifiedLogisticsServiceCharge"):
        tax = _child(each, ("AppliedTradeTax",))
        amount, reason = _found(each, "AppliedAmount", currency), text_of(each, "Description")
        invoice.allowances.append(Allowance(True, amount, reason, text_of(tax, "CategoryCode"), _rate(tax)))


def _party(element: Element | None) -> Party:
    if element is None:
        return Party()
    address, contact = _child(element, ("PostalTradeAddress",)), _child(element, ("DefinedTradeContact",))
    town = " ".join(filter(None, (text_of(address, "PostcodeCode"), text_of(address, "CityName"))))
    streets = (text_of(address, tag) for tag in ("LineOne", "LineTwo", "LineThree"))
    tax_ids = {each.get("schemeID", ""): text_of(each, ".") for each in element.iterfind("SpecifiedTaxRegistration/ID")}
    people = (text_of(contact, "PersonName"), text_of(contact, "DepartmentName"))
    return Party(
        name=text_of(element, "Name"),
        trading_name=text_of(element, "SpecifiedLegalOrganization/TradingBusinessName"),
        id=text_of(element, "ID"),
        global_id=text_of(element, "GlobalID"),
        registration=text_of(element, "SpecifiedLegalOrganization/ID"),
        legal_information=text_of(element, "Description"),
        address=tuple(filter(None, (*streets, town, text_of(address, "CountrySubDivisionName")))),
        country=text_of(address, "CountryID"),
        vat_id=tax_ids.get("VA", "").replace(" ", ""),
        tax_number=tax_ids.get("FC", ""),
        electronic_address=text_of(element, "URIUniversalCommunication/URIID"),
        contact=", ".join(filter(None, people)),
        phone=text_of(contact, "TelephoneUniversalCommunication/CompleteNumber"),
        fax=text_of(contact, "FaxUniversalCommunication/CompleteNumber"),
        email=text_of(contact, "EmailURIUniversalCommunication/URIID", "EmailURIUniversalCommunication/CompleteNumber"),
    )


def _line(element: Element, currency: str) -> Line:
    product = _child(element, ("SpecifiedTradeProduct",))
    agreement = _child(element, ("SpecifiedLineTradeAgreement", "SpecifiedSupplyChainTradeAgreement"))
    delivery = _child(element, ("SpecifiedLineTradeDelivery", "SpecifiedSupplyChainTradeDelivery"))
    settlement = _child(element, ("SpecifiedLineTradeSettlement", "SpecifiedSupplyChainTradeSettlement"))
    tax = _child(settlement, ("ApplicableTradeTax",))
    net = _child(agreement, ("NetPriceProductTradePrice",))
    gross = _child(agreement, ("GrossPriceProductTradePrice",))
    quantity = delivery.find("BilledQuantity")
    summation = _child(settlement, ("SpecifiedTradeSettlementLineMonetarySummation", _SUMMATION[1]))
    notes = (text_of(each, "Content") for each in element.iterfind("AssociatedDocumentLineDocument/IncludedNote"))
    return Line(
        position=text_of(element, "AssociatedDocumentLineDocument/LineID"),
        article=text_of(product, "SellerAssignedID"),
        buyer_article=text_of(product, "BuyerAssignedID"),
        standard_article=text_of(product, "GlobalID"),
        description=text_of(product, "Name"),
        details=text_of(product, "Description"),
        note="\n".join(filter(None, notes)),
        quantity=number(text_of(quantity, ".")),
        unit="" if quantity is None else quantity.get("unitCode", ""),
        unit_price=_found(net, "ChargeAmount", currency),
        price_quantity=number(text_of(net, "BasisQuantity") or text_of(gross, "BasisQuantity")),
        tax_category=text_of(tax, "CategoryCode"),
        tax_rate=_rate(tax),
        amount=_found(summation, "LineTotalAmount", currency),
        allowances=[_allowance(each, currency) for each in settlement.iterfind("SpecifiedTradeAllowanceCharge")],
        period_start=_day(settlement, "BillingSpecifiedPeriod/StartDateTime"),
        period_end=_day(settlement, "BillingSpecifiedPeriod/EndDateTime"),
        leaves=[text for _, text in all_texts(element)],
    )


def _allowance(element: Element, currency: str) -> Allowance:
    is_charge = text_of(element, "ChargeIndicator/Indicator").lower() in ("true", "1")
    amount = _found(element, "ActualAmount", currency)
    tax = _child(element, ("CategoryTradeTax",))
    return Allowance(is_charge, amount, text_of(element, "Reason"), text_of(tax, "CategoryCode"), _rate(tax))


def _rate(tax: Element) -> Amount | None:
    rate = number(text_of(tax, "RateApplicablePercent", "ApplicablePercent"))
    # A category without a rate, such as "outside the scope", is taxed with zero.
    return rate or (
        Amount("0", Decimal(0)) if text_of(tax, "CategoryCode") in ("O", "E", "AE", "K", "G", "Z") else None
    )


def _found(element: Element, tag: str, currency: str) -> Amount | None:
    found = element.find(tag)
    return None if found is None else _amount(found, currency)


def _amount(element: Element, currency: str) -> Amount | None:
    return number(text_of(element, "."), element.get("currencyID") or currency)


def _day(element: Element, path: str) -> str:
    """Return a date as ISO 8601, or as it is written if it is no day."""
    for each in (f"{path}/DateTimeString", f"{path}/DateString", path):
        found = element.find(each)
        if found is not None and (text := text_of(found, ".")):
            return of_cii(text, found.get("format", ""))
    return ""
