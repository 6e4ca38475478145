"""E-invoices of all syntaxes that say the same, and PDFs that show them."""

from fpdf import FPDF

NUMBER, ISSUED, DUE, IBAN = "2026-117", "2026-03-05", "2026-04-04", "DE89370400440532013000"
SELLER, BUYER = "Nagel & Söhne GmbH", "Kranbau Weser AG"


def cii(*, profile="urn:cen.eu:en16931:2017", code="380"):
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<!-- licence -->
<rsm:CrossIndustryInvoice xmlns:rsm="urn:un:unece:uncefact:data:standard:CrossIndustryInvoice:100"
 xmlns:ram="urn:un:unece:uncefact:data:standard:ReusableAggregateBusinessInformationEntity:100"
 xmlns:udt="urn:un:unece:uncefact:data:standard:UnqualifiedDataType:100">
<rsm:ExchangedDocumentContext><ram:GuidelineSpecifiedDocumentContextParameter><ram:ID>{profile}</ram:ID>
</ram:GuidelineSpecifiedDocumentContextParameter></rsm:ExchangedDocumentContext>
<rsm:ExchangedDocument><ram:ID>{NUMBER}</ram:ID><ram:TypeCode>{code}</ram:TypeCode>
<ram:IssueDateTime><udt:DateTimeString format="102">20260305</udt:DateTimeString></ram:IssueDateTime>
<ram:IncludedNote><ram:Content>Thank you.</ram:Content></ram:IncludedNote></rsm:ExchangedDocument>
<rsm:SupplyChainTradeTransaction>{_cii_line(1, "N-10", "Steel nails", "100", "0.0950", "9.50", "19.00")}
{_cii_line(2, "H-3", "Hammer, small", "2", "20.00", "40.00", "7")}
<ram:ApplicableHeaderTradeAgreement><ram:BuyerReference>04-1-2</ram:BuyerReference>
<ram:SellerTradeParty><ram:ID>549</ram:ID><ram:GlobalID schemeID="0088">4000001123452</ram:GlobalID>
<ram:Name>Nagel &amp; Söhne GmbH</ram:Name><ram:DefinedTradeContact><ram:PersonName>Ada Nagel</ram:PersonName>
<ram:TelephoneUniversalCommunication><ram:CompleteNumber>+49 421 1234</ram:CompleteNumber>
</ram:TelephoneUniversalCommunication><ram:EmailURIUniversalCommunication><ram:URIID>ada@nagel.example</ram:URIID>
</ram:EmailURIUniversalCommunication></ram:DefinedTradeContact><ram:PostalTradeAddress>
<ram:PostcodeCode>28195</ram:PostcodeCode><ram:LineOne>Am Markt 1</ram:LineOne><ram:CityName>Bremen</ram:CityName>
<ram:CountryID>DE</ram:CountryID></ram:PostalTradeAddress>
<ram:SpecifiedTaxRegistration><ram:ID schemeID="FC">60/111/22222</ram:ID></ram:SpecifiedTaxRegistration>
<ram:SpecifiedTaxRegistration><ram:ID schemeID="VA">DE136695976</ram:ID></ram:SpecifiedTaxRegistration>
</ram:SellerTradeParty>
<ram:BuyerTradeParty><ram:ID>K-4711</ram:ID><ram:Name>{BUYER}</ram:Name><ram:PostalTradeAddress>
<ram:PostcodeCode>27568</ram:PostcodeCode><ram:LineOne>Hafenstraße 20</ram:LineOne>
<ram:CityName>Bremerhaven</ram:CityName><ram:CountryID>DE</ram:CountryID></ram:PostalTradeAddress>
</ram:BuyerTradeParty>
<ram:BuyerOrderReferencedDocument><ram:IssuerAssignedID>B-88</ram:IssuerAssignedID>
</ram:BuyerOrderReferencedDocument></ram:ApplicableHeaderTradeAgreement>
<ram:ApplicableHeaderTradeDelivery><ram:ActualDeliverySupplyChainEvent><ram:OccurrenceDateTime>
<udt:DateTimeString format="102">20260303</udt:DateTimeString></ram:OccurrenceDateTime>
</ram:ActualDeliverySupplyChainEvent></ram:ApplicableHeaderTradeDelivery>
<ram:ApplicableHeaderTradeSettlement><ram:InvoiceCurrencyCode>EUR</ram:InvoiceCurrencyCode>
<ram:SpecifiedTradeSettlementPaymentMeans><ram:TypeCode>58</ram:TypeCode><ram:PayeePartyCreditorFinancialAccount>
<ram:IBANID>{IBAN}</ram:IBANID></ram:PayeePartyCreditorFinancialAccount><ram:PayeeSpecifiedCreditorFinancialInstitution>
<ram:BICID>COBADEFFXXX</ram:BICID></ram:PayeeSpecifiedCreditorFinancialInstitution>
</ram:SpecifiedTradeSettlementPaymentMeans>
{_cii_tax("1.62", "8.50", "19.00")}{_cii_tax("2.80", "40.00", "7.00")}
<ram:SpecifiedTradeAllowanceCharge><ram:ChargeIndicator><udt:Indicator>false</udt:Indicator></ram:ChargeIndicator>
<ram:ActualAmount>1.00</ram:ActualAmount><ram:Reason>Loyalty</ram:Reason><ram:CategoryTradeTax>
<ram:TypeCode>VAT</ram:TypeCode><ram:CategoryCode>S</ram:CategoryCode>
<ram:RateApplicablePercent>19.00</ram:RateApplicablePercent></ram:CategoryTradeTax></ram:SpecifiedTradeAllowanceCharge>
<ram:SpecifiedTradePaymentTerms><ram:Description>Payable within 30 days</ram:Description><ram:DueDateDateTime>
<udt:DateTimeString format="102">20260404</udt:DateTimeString></ram:DueDateDateTime></ram:SpecifiedTradePaymentTerms>
<ram:SpecifiedTradeSettlementHeaderMonetarySummation><ram:LineTotalAmount>49.50</ram:LineTotalAmount>
<ram:ChargeTotalAmount>0</ram:ChargeTotalAmount><ram:AllowanceTotalAmount>1.00</ram:AllowanceTotalAmount>
<ram:TaxBasisTotalAmount>48.50</ram:TaxBasisTotalAmount><ram:TaxTotalAmount currencyID="EUR">4.42</ram:TaxTotalAmount>
<ram:GrandTotalAmount>52.92</ram:GrandTotalAmount><ram:TotalPrepaidAmount>10.00</ram:TotalPrepaidAmount>
<ram:DuePayableAmount>42.92</ram:DuePayableAmount></ram:SpecifiedTradeSettlementHeaderMonetarySummation>
</ram:ApplicableHeaderTradeSettlement></rsm:SupplyChainTradeTransaction></rsm:CrossIndustryInvoice>"""


def zugferd_1():
    """Return the same invoice with the tags of ZUGFeRD 1."""
    text = cii(profile="urn:ferd:CrossIndustryDocument:invoice:1p0:comfort")
    for new, old in (
        ("CrossIndustryInvoice xmlns:rsm=\"urn:un:unece:uncefact:data:standard:CrossIndustryInvoice:100\"",
         "CrossIndustryDocument xmlns:rsm=\"urn:ferd:CrossIndustryDocument:invoice:1p0\""),
        ("/rsm:CrossIndustryInvoice", "/rsm:CrossIndustryDocument"),
        ("rsm:ExchangedDocument>", "rsm:HeaderExchangedDocument>"),
        ("rsm:ExchangedDocumentContext", "rsm:SpecifiedExchangedDocumentContext"),
        ("rsm:SupplyChainTradeTransaction", "rsm:SpecifiedSupplyChainTradeTransaction"),
        ("ApplicableHeaderTrade", "ApplicableSupplyChainTrade"),
        ("SpecifiedLineTrade", "SpecifiedSupplyChainTrade"),
        ("SettlementHeaderMonetary", "SettlementMonetary"),
        ("SettlementLineMonetary", "SettlementMonetary"),
        ("RateApplicablePercent", "ApplicablePercent"),
        ("IssuerAssignedID", "ID"),
    ):  # fmt: skip
        text = text.replace(new, old)
    return text


def ubl(*, root="Invoice", profile="urn:cen.eu:en16931:2017", code="380"):
    quantity = "InvoicedQuantity" if root == "Invoice" else "CreditedQuantity"
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<{root} xmlns="urn:oasis:names:specification:ubl:schema:xsd:{root}-2"
 xmlns:cac="urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2"
 xmlns:cbc="urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2">
<cbc:CustomizationID>{profile}</cbc:CustomizationID><cbc:ID>{NUMBER}</cbc:ID><cbc:IssueDate>{ISSUED}</cbc:IssueDate>
<cbc:DueDate>{DUE}</cbc:DueDate><cbc:{root}TypeCode>{code}</cbc:{root}TypeCode><cbc:Note>Thank you.</cbc:Note>
<cbc:DocumentCurrencyCode>EUR</cbc:DocumentCurrencyCode><cbc:BuyerReference>04-1-2</cbc:BuyerReference>
<cac:OrderReference><cbc:ID>B-88</cbc:ID></cac:OrderReference>
<cac:AccountingSupplierParty><cac:Party><cac:PartyIdentification><cbc:ID schemeID="0088">4000001123452</cbc:ID>
</cac:PartyIdentification><cac:PartyName><cbc:Name>Nagel</cbc:Name></cac:PartyName>
{_ubl_address("Am Markt 1", "Bremen", "28195")}{_ubl_scheme("60/111/22222", "FC")}{_ubl_scheme("DE136695976", "VAT")}
<cac:PartyLegalEntity><cbc:RegistrationName>Nagel &amp; Söhne GmbH</cbc:RegistrationName></cac:PartyLegalEntity>
<cac:Contact><cbc:Name>Ada Nagel</cbc:Name><cbc:Telephone>+49 421 1234</cbc:Telephone>
<cbc:ElectronicMail>ada@nagel.example</cbc:ElectronicMail></cac:Contact></cac:Party></cac:AccountingSupplierParty>
<cac:AccountingCustomerParty><cac:Party><cac:PartyIdentification><cbc:ID>K-4711</cbc:ID></cac:PartyIdentification>
{_ubl_address("Hafenstraße 20", "Bremerhaven", "27568")}<cac:PartyLegalEntity>
<cbc:RegistrationName>{BUYER}</cbc:RegistrationName></cac:PartyLegalEntity></cac:Party></cac:AccountingCustomerParty>
<cac:Delivery><cbc:ActualDeliveryDate>2026-03-03</cbc:ActualDeliveryDate></cac:Delivery>
<cac:PaymentMeans><cbc:PaymentMeansCode>58</cbc:PaymentMeansCode><cac:PayeeFinancialAccount><cbc:ID>{IBAN}</cbc:ID>
<cac:FinancialInstitutionBranch><cbc:ID>COBADEFFXXX</cbc:ID></cac:FinancialInstitutionBranch>
</cac:PayeeFinancialAccount></cac:PaymentMeans>
<cac:PaymentTerms><cbc:Note>Payable within 30 days</cbc:Note></cac:PaymentTerms>
<cac:AllowanceCharge><cbc:ChargeIndicator>false</cbc:ChargeIndicator>
<cbc:AllowanceChargeReason>Loyalty</cbc:AllowanceChargeReason><cbc:Amount currencyID="EUR">1.00</cbc:Amount>
{_ubl_category("TaxCategory", "19.00")}</cac:AllowanceCharge>
<cac:TaxTotal><cbc:TaxAmount currencyID="EUR">4.42</cbc:TaxAmount>{_ubl_tax("8.50", "1.62", "19.00")}
{_ubl_tax("40.00", "2.80", "7.00")}</cac:TaxTotal>
<cac:LegalMonetaryTotal><cbc:LineExtensionAmount currencyID="EUR">49.50</cbc:LineExtensionAmount>
<cbc:TaxExclusiveAmount currencyID="EUR">48.50</cbc:TaxExclusiveAmount>
<cbc:TaxInclusiveAmount currencyID="EUR">52.92</cbc:TaxInclusiveAmount>
<cbc:AllowanceTotalAmount currencyID="EUR">1.00</cbc:AllowanceTotalAmount>
<cbc:ChargeTotalAmount currencyID="EUR">0</cbc:ChargeTotalAmount>
<cbc:PrepaidAmount currencyID="EUR">10.00</cbc:PrepaidAmount>
<cbc:PayableAmount currencyID="EUR">42.92</cbc:PayableAmount></cac:LegalMonetaryTotal>
{_ubl_line(root, quantity, 1, "N-10", "Steel nails", "100", "0.0950", "9.50", "19.00")}
{_ubl_line(root, quantity, 2, "H-3", "Hammer, small", "2", "20.00", "40.00", "7")}
</{root}>"""


def fattura(*, bodies=1, code="TD01"):
    body = f"""<FatturaElettronicaBody><DatiGenerali><DatiGeneraliDocumento><TipoDocumento>{code}</TipoDocumento>
<Divisa>EUR</Divisa><Data>{ISSUED}</Data><Numero>{NUMBER}</Numero><Causale>Grazie.</Causale></DatiGeneraliDocumento>
<DatiOrdineAcquisto><IdDocumento>B-88</IdDocumento></DatiOrdineAcquisto></DatiGenerali>
<DatiBeniServizi><DettaglioLinee><NumeroLinea>1</NumeroLinea><Descrizione>Chiodi</Descrizione>
<Quantita>100.00</Quantita><PrezzoUnitario>0.10</PrezzoUnitario><PrezzoTotale>10.00</PrezzoTotale>
<AliquotaIVA>22.00</AliquotaIVA></DettaglioLinee><DatiRiepilogo><AliquotaIVA>22.00</AliquotaIVA>
<ImponibileImporto>10.00</ImponibileImporto><Imposta>2.20</Imposta></DatiRiepilogo></DatiBeniServizi>
<DatiPagamento><CondizioniPagamento>TP02</CondizioniPagamento><DettaglioPagamento>
<ModalitaPagamento>MP05</ModalitaPagamento><DataScadenzaPagamento>{DUE}</DataScadenzaPagamento>
<ImportoPagamento>12.20</ImportoPagamento><IBAN>IT60X0542811101000000123456</IBAN></DettaglioPagamento></DatiPagamento>
</FatturaElettronicaBody>"""
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<p:FatturaElettronica versione="FPR12" xmlns:p="http://ivaservizi.agenziaentrate.gov.it/docs/xsd/fatture/v1.2">
<FatturaElettronicaHeader><DatiTrasmissione><FormatoTrasmissione>FPR12</FormatoTrasmissione></DatiTrasmissione>
<CedentePrestatore><DatiAnagrafici><IdFiscaleIVA><IdPaese>IT</IdPaese><IdCodice>01234567890</IdCodice></IdFiscaleIVA>
<Anagrafica><Denominazione>Alfa SRL</Denominazione></Anagrafica></DatiAnagrafici>
<Sede><Indirizzo>Viale Roma</Indirizzo><NumeroCivico>5</NumeroCivico><CAP>07100</CAP><Comune>Sassari</Comune>
<Provincia>SS</Provincia><Nazione>IT</Nazione></Sede></CedentePrestatore>
<CessionarioCommittente><DatiAnagrafici><CodiceFiscale>RSSMRA80A01H501U</CodiceFiscale><Anagrafica>
<Nome>Mario</Nome><Cognome>Rossi</Cognome></Anagrafica></DatiAnagrafici>
<Sede><Indirizzo>Via Torino 38</Indirizzo><CAP>00145</CAP><Comune>Roma</Comune><Nazione>IT</Nazione></Sede>
</CessionarioCommittente></FatturaElettronicaHeader>{body * bodies}</p:FatturaElettronica>"""


# What a page of the invoice shows, as left and right cells of its rows.
PAGE = (
    ("Nagel & Söhne GmbH", "Invoice number: 2026-117"),
    ("Am Markt 1", "Invoice date: 05.03.2026"),
    ("28195 Bremen", "Delivery date: 03.03.2026"),
    ("Contact: Ada Nagel", "Customer number: K-4711"),
    ("Telephone: +49 421 1234", "Order number: B-88"),
    ("Kranbau Weser AG", "VAT ID: DE136695976"),
    ("Hafenstraße 20", "Tax number: 60/111/22222"),
    ("27568 Bremerhaven", ""),
    ("N-10  Steel nails  100  0.0950  19 %", "9.50"),
    ("H-3  Hammer, small  2  20.00  7 %", "40.00"),
    ("Sum of lines", "49.50"),
    ("Discounts", "1.00"),
    ("Net total", "48.50"),
    ("VAT 19 % of 8.50", "1.62"),
    ("VAT 7 % of 40.00", "2.80"),
    ("Total VAT", "4.42"),
    ("Gross total", "52.92 EUR"),
    ("Prepaid", "10.00"),
    ("Amount due", "42.92"),
    ("Payable within 30 days", "Due date: 04.04.2026"),
    ("IBAN: DE89 3704 0044 0532 0130 00", "BIC: COBADEFFXXX"),
    ("E-mail: ada@nagel.example", "Reference: 04-1-2"),
)


def page(**changes):
    """Return the page with other texts, such as `page(**{"52.92": "53.92"})`."""
    rows = PAGE
    for old, new in changes.items():
        assert any(old in cell for row in rows for cell in row), old
        rows = tuple(tuple(cell.replace(old, new) for cell in row) for row in rows)
    return rows


def pdf(path, rows=PAGE, **attachments):
    """Write a PDF that shows these rows. Attachments are named by their keys, with a dot for `__`."""
    file = FPDF()
    file.add_page()
    file.set_font("Helvetica", size=10)
    for left, right in rows:
        file.cell(110, 8, left)
        file.cell(0, 8, right, new_x="LMARGIN", new_y="NEXT")
    for name, content in attachments.items():
        data = content if isinstance(content, bytes) else content.encode()
        file.embed_file(bytes=data, basename=name.replace("__", "."))
    file.output(str(path))
    return path


def _cii_line(position, article, name, quantity, price, amount, rate):
    return f"""<ram:IncludedSupplyChainTradeLineItem><ram:AssociatedDocumentLineDocument>
<ram:LineID>{position}</ram:LineID></ram:AssociatedDocumentLineDocument><ram:SpecifiedTradeProduct><ram:SellerAssignedID>{article}</ram:SellerAssignedID>
<ram:Name>{name}</ram:Name></ram:SpecifiedTradeProduct><ram:SpecifiedLineTradeAgreement>
<ram:NetPriceProductTradePrice><ram:ChargeAmount>{price}</ram:ChargeAmount></ram:NetPriceProductTradePrice>
</ram:SpecifiedLineTradeAgreement><ram:SpecifiedLineTradeDelivery>
<ram:BilledQuantity unitCode="C62">{quantity}</ram:BilledQuantity></ram:SpecifiedLineTradeDelivery>
<ram:SpecifiedLineTradeSettlement><ram:ApplicableTradeTax><ram:TypeCode>VAT</ram:TypeCode>
<ram:CategoryCode>S</ram:CategoryCode><ram:RateApplicablePercent>{rate}</ram:RateApplicablePercent>
</ram:ApplicableTradeTax><ram:SpecifiedTradeSettlementLineMonetarySummation>
<ram:LineTotalAmount>{amount}</ram:LineTotalAmount></ram:SpecifiedTradeSettlementLineMonetarySummation>
</ram:SpecifiedLineTradeSettlement></ram:IncludedSupplyChainTradeLineItem>"""


def _cii_tax(amount, base, rate):
    return f"""<ram:ApplicableTradeTax><ram:CalculatedAmount>{amount}</ram:CalculatedAmount>
<ram:TypeCode>VAT</ram:TypeCode><ram:BasisAmount>{base}</ram:BasisAmount><ram:CategoryCode>S</ram:CategoryCode>
<ram:RateApplicablePercent>{rate}</ram:RateApplicablePercent></ram:ApplicableTradeTax>"""


def _ubl_address(street, city, postcode):
    return f"""<cac:PostalAddress><cbc:StreetName>{street}</cbc:StreetName><cbc:CityName>{city}</cbc:CityName>
<cbc:PostalZone>{postcode}</cbc:PostalZone><cac:Country><cbc:IdentificationCode>DE</cbc:IdentificationCode></cac:Country>
</cac:PostalAddress>"""


def _ubl_scheme(number, scheme):
    return f"""<cac:PartyTaxScheme><cbc:CompanyID>{number}</cbc:CompanyID><cac:TaxScheme><cbc:ID>{scheme}</cbc:ID>
</cac:TaxScheme></cac:PartyTaxScheme>"""


def _ubl_category(tag, rate):
    return f"""<cac:{tag}><cbc:ID>S</cbc:ID><cbc:Percent>{rate}</cbc:Percent><cac:TaxScheme><cbc:ID>VAT</cbc:ID>
</cac:TaxScheme></cac:{tag}>"""


def _ubl_tax(base, amount, rate):
    return f"""<cac:TaxSubtotal><cbc:TaxableAmount currencyID="EUR">{base}</cbc:TaxableAmount>
<cbc:TaxAmount currencyID="EUR">{amount}</cbc:TaxAmount>{_ubl_category("TaxCategory", rate)}</cac:TaxSubtotal>"""


def _ubl_line(root, tag, position, article, name, quantity, price, amount, rate):
    return f"""<cac:{root}Line><cbc:ID>{position}</cbc:ID><cbc:{tag} unitCode="C62">{quantity}</cbc:{tag}>
<cbc:LineExtensionAmount currencyID="EUR">{amount}</cbc:LineExtensionAmount><cac:Item><cbc:Name>{name}</cbc:Name>
<cac:SellersItemIdentification><cbc:ID>{article}</cbc:ID></cac:SellersItemIdentification>
{_ubl_category("ClassifiedTaxCategory", rate)}</cac:Item>
<cac:Price><cbc:PriceAmount currencyID="EUR">{price}</cbc:PriceAmount></cac:Price></cac:{root}Line>"""
