"""Reads UBL invoices and credit notes: EN 16931, Peppol BIS Billing, XRechnung and others."""

import re
from xml.etree.ElementTree import Element

from ade_understanding.einvoice.dates import of_iso
from ade_understanding.einvoice.model import Account, Allowance, Amount, Invoice, Line, Party, Tax, number
from ade_understanding.einvoice.parsing import all_texts, text_of

ROOTS = frozenset({"Invoice", "CreditNote"})
NAMESPACES = tuple(f"urn:oasis:names:specification:ubl:schema:xsd:{root}-2" for root in sorted(ROOTS))
_TEXTS = {
    "invoice_number": "ID",
    "business_process": "ProfileID",
    "buyer_reference": "BuyerReference",
    "order_number": "OrderReference/ID",
    "sales_order_number": "OrderReference/SalesOrderID",
    "contract_number": "ContractDocumentReference/ID",
    "delivery_note_number": "DespatchDocumentReference/ID",
    "receiving_advice_number": "ReceiptDocumentReference/ID",
    "tender_number": "OriginatorDocumentReference/ID",
    "accounting_reference": "AccountingCost",
    "preceding_invoice_number": "BillingReference/InvoiceDocumentReference/ID",
    "tax_currency": "TaxCurrencyCode",
    "payment_reference": "PaymentMeans/PaymentID",
    "card_number": "PaymentMeans/CardAccount/PrimaryAccountNumberID",
    "mandate_reference": "PaymentMeans/PaymentMandate/ID",
    "debited_iban": "PaymentMeans/PaymentMandate/PayerFinancialAccount/ID",
    "payment_means": "PaymentMeans/PaymentMeansCode",
    "recipient_id": "Delivery/DeliveryLocation/ID",
}
_DATES = {
    "invoice_date": ("IssueDate",),
    "due_date": ("DueDate", "PaymentMeans/PaymentDueDate"),
    "tax_date": ("TaxPointDate",),
    "delivery_date": ("Delivery/ActualDeliveryDate",),
    "period_start": ("InvoicePeriod/StartDate",),
    "period_end": ("InvoicePeriod/EndDate",),
    "order_date": ("OrderReference/IssueDate",),
    "preceding_invoice_date": ("BillingReference/InvoiceDocumentReference/IssueDate",),
}
_TOTALS = {
    "line_total": "LineExtensionAmount",
    "allowance_total": "AllowanceTotalAmount",
    "charge_total": "ChargeTotalAmount",
    "net_total": "TaxExclusiveAmount",
    "gross_total": "TaxInclusiveAmount",
    "prepaid_amount": "PrepaidAmount",
    "rounding_amount": "PayableRoundingAmount",
    "due_amount": "PayableAmount",
}
_IBAN = re.compile(r"[A-Z]{2}\d{2}[A-Z0-9]{8,30}")


def read(root: Element) -> Invoice:
    is_credit_note = root.tag == "CreditNote"
    invoice = Invoice(
        "UBL",
        text_of(root, "CustomizationID"),
        text_of(root, f"{root.tag}TypeCode"),
        is_credit_note=is_credit_note,
        currency=text_of(root, "DocumentCurrencyCode"),
        texts={name: text_of(root, path) for name, path in _TEXTS.items()},
        dates={name: of_iso(text_of(root, *paths)) for name, paths in _DATES.items()},
    )
    # An invoice may also be a credit note by its code.
    invoice.is_credit_note |= invoice.type_code in ("81", "83", "381", "396", "532")
    invoice.texts["debited_iban"] = invoice.texts["debited_iban"].replace(" ", "")
    invoice.texts["project_number"] = text_of(
        root, "ProjectReference/ID", "AdditionalDocumentReference[DocumentTypeCode='50']/ID"
    )
    invoice.texts["object_number"] = text_of(root, "AdditionalDocumentReference[DocumentTypeCode='130']/ID")
    invoice.texts["note"] = _texts(root, "Note")
    invoice.texts["payment_terms"] = _texts(root, "PaymentTerms/Note")
    invoice.seller = _party(root.find("AccountingSupplierParty/Party"))
    invoice.buyer = _party(root.find("AccountingCustomerParty/Party"))
    # Peppol's identifiers of buyers mostly have a scheme.
    invoice.buyer.id = invoice.buyer.id or invoice.buyer.global_id
    invoice.payee = _party(root.find("PayeeParty"))
    invoice.tax_representative = _party(root.find("TaxRepresentativeParty"))
    invoice.recipient = _recipient(root)
    invoice.texts["creditor_id"] = text_of(
        root,
        "PayeeParty/PartyIdentification/ID[@schemeID='SEPA']",
        "AccountingSupplierParty/Party/PartyIdentification/ID[@schemeID='SEPA']",
    )
    invoice.accounts = [
        account for each in root.iterfind("PaymentMeans/PayeeFinancialAccount") if (account := _account(each))
    ]
    _read_totals(invoice, root)
    invoice.lines = [_line(each, invoice.currency) for each in root.iterfind(f"{root.tag}Line")]
    return invoice


def _texts(element: Element, path: str) -> str:
    return "\n".join(filter(None, (text_of(each, ".") for each in element.iterfind(path))))


def _read_totals(invoice: Invoice, root: Element) -> None:
    currency = invoice.currency
    for name, tag in _TOTALS.items():
        if amount := _amount(root, f"LegalMonetaryTotal/{tag}", currency):
            invoice.amounts[name] = amount
    for each in root.iterfind("TaxTotal"):
        if amount := _amount(each, "TaxAmount", currency):
            is_foreign = amount.currency == invoice.texts["tax_currency"] != currency
            invoice.amounts.setdefault("tax_total_in_tax_currency" if is_foreign else "tax_total", amount)
        for part in each.iterfind("TaxSubtotal"):
            invoice.taxes.append(
                Tax(
                    text_of(part, "TaxCategory/ID"),
                    number(text_of(part, "TaxCategory/Percent", "Percent") or "0"),
                    _amount(part, "TaxableAmount", currency),
                    _amount(part, "TaxAmount", currency),
                    text_of(part, "TaxCategory/TaxExemptionReason", "TaxCategory/TaxExemptionReasonCode"),
                )
            )
    invoice.allowances = [_allowance(each, currency) for each in root.iterfind("AllowanceCharge")]


def _party(element: Element | None) -> Party:
    if element is None:
        return Party()
    # The ID of a SEPA creditor is not the one of a party.
    ids = [each for each in element.iterfind("PartyIdentification/ID") if each.get("schemeID") != "SEPA"]
    name, trading_name = text_of(element, "PartyLegalEntity/RegistrationName"), text_of(element, "PartyName/Name")
    schemes = [
        (text_of(each, "TaxScheme/ID"), text_of(each, "CompanyID")) for each in element.iterfind("PartyTaxScheme")
    ]
    return Party(
        name=name or trading_name,
        trading_name=trading_name if trading_name != name and name else "",
        id=next((text_of(each, ".") for each in ids if not each.get("schemeID")), ""),
        global_id=next((text_of(each, ".") for each in ids if each.get("schemeID")), ""),
        registration=text_of(element, "PartyLegalEntity/CompanyID"),
        legal_information=text_of(element, "PartyLegalEntity/CompanyLegalForm"),
        address=_address(element.find("PostalAddress")),
        country=text_of(element, "PostalAddress/Country/IdentificationCode"),
        vat_id=next((id_ for scheme, id_ in schemes if scheme == "VAT"), "").replace(" ", ""),
        tax_number=next((id_ for scheme, id_ in schemes if scheme != "VAT"), ""),
        electronic_address=text_of(element, "EndpointID"),
        contact=text_of(element, "Contact/Name"),
        phone=text_of(element, "Contact/Telephone"),
        fax=text_of(element, "Contact/Telefax"),
        email=text_of(element, "Contact/ElectronicMail"),
    )


def _recipient(root: Element) -> Party:
    return Party(
        name=text_of(root, "Delivery/DeliveryParty/PartyName/Name"),
        id=text_of(root, "Delivery/DeliveryLocation/ID"),
        address=_address(root.find("Delivery/DeliveryLocation/Address")),
        country=text_of(root, "Delivery/DeliveryLocation/Address/Country/IdentificationCode"),
    )


def _address(element: Element | None) -> tuple[str, ...]:
    town = " ".join(filter(None, (text_of(element, "PostalZone"), text_of(element, "CityName"))))
    streets = (text_of(element, path) for path in ("StreetName", "AdditionalStreetName", "AddressLine/Line"))
    return tuple(filter(None, (*streets, town, text_of(element, "CountrySubentity"))))


def _account(element: Element) -> Account | None:
    written, name = text_of(element, "ID"), text_of(element, "Name")
    id_ = written.replace(" ", "")
    if not id_:
        return None
    bic = text_of(element, "FinancialInstitutionBranch/ID", "FinancialInstitutionBranch/FinancialInstitution/ID")
    is_iban = _IBAN.fullmatch(id_.upper()) is not None
    return Account(id_ if is_iban else "", "" if is_iban else written, name, bic.replace(" ", ""))


def _line(element: Element, currency: str) -> Line:
    quantity = next(
        (each for tag in ("InvoicedQuantity", "CreditedQuantity") if (each := element.find(tag)) is not None), None
    )
    item = element.find("Item")
    return Line(
        position=text_of(element, "ID"),
        article=text_of(item, "SellersItemIdentification/ID"),
        buyer_article=text_of(item, "BuyersItemIdentification/ID"),
        standard_article=text_of(item, "StandardItemIdentification/ID"),
        description=text_of(item, "Name"),
        details=text_of(item, "Description"),
        note=_texts(element, "Note"),
        quantity=number(text_of(quantity, ".")),
        unit="" if quantity is None else quantity.get("unitCode", ""),
        unit_price=_amount(element, "Price/PriceAmount", currency),
        price_quantity=number(text_of(element, "Price/BaseQuantity")),
        tax_category=text_of(item, "ClassifiedTaxCategory/ID"),
        tax_rate=number(text_of(item, "ClassifiedTaxCategory/Percent") or "0"),
        amount=_amount(element, "LineExtensionAmount", currency),
        allowances=[_allowance(each, currency) for each in element.iterfind("AllowanceCharge")],
        period_start=of_iso(text_of(element, "InvoicePeriod/StartDate")),
        period_end=of_iso(text_of(element, "InvoicePeriod/EndDate")),
        leaves=[text for _, text in all_texts(element)],
    )


def _allowance(element: Element, currency: str) -> Allowance:
    return Allowance(
        text_of(element, "ChargeIndicator").lower() in ("true", "1"),
        _amount(element, "Amount", currency),
        text_of(element, "AllowanceChargeReason"),
        text_of(element, "TaxCategory/ID"),
        number(text_of(element, "TaxCategory/Percent") or "0"),
    )


def _amount(element: Element, path: str, currency: str) -> Amount | None:
    found = element.find(path)
    return None if found is None else number(text_of(found, "."), found.get("currencyID") or currency)
