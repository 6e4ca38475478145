"""Faults of e-invoices, in words."""

import pytest

from ade_understanding.einvoice.checks import check
from ade_understanding.einvoice.reading import read
from tests.einvoice import making

XRECHNUNG = "urn:cen.eu:en16931:2017#compliant#urn:xeinkauf.de:kosit:xrechnung_3.0"
PEPPOL = "urn:cen.eu:en16931:2017#compliant#urn:fdc:peppol.eu:2017:poacc:billing:3.0"


def problems_of(xml):
    return [(each.code, each.field) for each in check(read(xml.encode()))]


@pytest.mark.parametrize(
    "xml",
    [
        making.cii(),
        making.cii(profile=XRECHNUNG),
        making.zugferd_1(),
        making.ubl(),
        making.ubl(profile=PEPPOL),
        making.ubl(root="CreditNote", code="381"),
        making.fattura(),
    ],
)
def test_a_correct_invoice_has_no_problems(xml):
    assert check(read(xml.encode())) == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("LineTotalAmount>49.50<", "LineTotalAmount>59.50<", {("sum_of_lines", "line_total")}),
        ("AllowanceTotalAmount>1.00<", "AllowanceTotalAmount>2.00<", {("sum_of_allowances", "allowance_total")}),
        ("TaxBasisTotalAmount>48.50<", "TaxBasisTotalAmount>47.50<", {("sum_of_net", "net_total")}),
        ('"EUR">4.42<', '"EUR">4.43<', {("sum_of_tax", "tax_total")}),
        ("GrandTotalAmount>52.92<", "GrandTotalAmount>52.93<", {("sum_of_gross", "gross_total")}),
        ("DuePayableAmount>42.92<", "DuePayableAmount>42.90<", {("sum_of_due", "due_amount")}),
        ("CalculatedAmount>1.62<", "CalculatedAmount>1.72<", {("tax_of_rate", "tax_total")}),
        ("BasisAmount>40.00<", "BasisAmount>41.00<", {("base_of_rate", "net_total")}),
        ('format="102">20260404<', 'format="102">20260304<', {("due_before_issue", "due_date")}),
        ('format="102">20260404<', 'format="102">20260431<', {("bad_date", "due_date")}),
        ("TypeCode>380<", "TypeCode>999<", {("unknown_document_type", "")}),
        ("InvoiceCurrencyCode>EUR<", "InvoiceCurrencyCode>EURO<", {("unknown_currency", "currency")}),
        ("CountryID>DE<", "CountryID>XX<", {("unknown_country", "seller_address")}),
        ('"VA">DE136695976<', '"VA">136695976<', {("bad_vat_id", "vat_id")}),
        ("CategoryCode>S<", "CategoryCode>Q<", {("unknown_tax_category", "tax_total")}),
        (
            "S</ram:CategoryCode>\n<ram:RateApplicablePercent>7.00<",
            "E</ram:CategoryCode>\n<ram:RateApplicablePercent>7.00<",
            {("rate_of_category", "tax_total")},
        ),
        ("GrandTotalAmount>52.92<", "GrandTotalAmount>about 50<", {("bad_number", "gross_total")}),
        ("GrandTotalAmount>52.92<", "GrandTotalAmount>1e9999999<", {("bad_number", "gross_total")}),
        ("GrandTotalAmount>52.92<", "GrandTotalAmount>NaN<", {("bad_number", "gross_total")}),
        (">100<", ">many<", {("bad_number", "")}),
        ("<ram:ID>2026-117</ram:ID>", "", {("missing_field", "invoice_number")}),
        ("<ram:Name>Kranbau Weser AG</ram:Name>", "", {("missing_field", "buyer")}),
        ("<ram:DuePayableAmount>42.92</ram:DuePayableAmount>", "", {("missing_field", "due_amount")}),
        ("<ram:Name>Steel nails</ram:Name>", "", {("missing_in_line", "")}),
    ],
)
def test_each_fault_is_named_once(old, new, expected):
    xml = making.cii()
    assert old in xml

    assert expected <= set(problems_of(xml.replace(old, new, 1)))


def test_a_sum_is_explained_with_both_amounts():
    xml = making.cii().replace("GrandTotalAmount>52.92<", "GrandTotalAmount>60<")

    messages = [each.message for each in check(read(xml.encode()))]

    assert "Net total and tax make 52.92, but the e-invoice gives 60.00 EUR (BR-CO-15)." in messages


def test_profiles_ask_for_different_fields():
    without_reference = making.cii().replace("<ram:BuyerReference>04-1-2</ram:BuyerReference>", "")
    start = without_reference.index("<ram:IncludedSupplyChainTradeLineItem>")
    end = without_reference.rindex("</ram:IncludedSupplyChainTradeLineItem>")
    without_lines = (
        without_reference[:start] + without_reference[end + len("</ram:IncludedSupplyChainTradeLineItem>") :]
    )

    assert problems_of(without_reference) == []
    assert problems_of(without_reference.replace("urn:cen.eu:en16931:2017", XRECHNUNG)) == [
        ("missing_field", "buyer_reference")
    ]
    assert ("missing_lines", "") in problems_of(without_lines)
    assert problems_of(without_lines.replace("urn:cen.eu:en16931:2017", "urn:factur-x.eu:1p0:minimum")) == []


def test_peppol_also_checks_the_amount_of_a_line():
    xml = making.ubl(profile=PEPPOL).replace('PriceAmount currencyID="EUR">20.00', 'PriceAmount currencyID="EUR">21.00')

    assert problems_of(xml) == [("amount_of_line", "")]
    assert problems_of(xml.replace(PEPPOL, "urn:cen.eu:en16931:2017")) == []


def test_allowances_may_be_negative():
    xml = making.cii().replace("ActualAmount>1.00<", "ActualAmount>-1.00<")

    assert problems_of(xml) == []


def test_several_invoices_in_one_file_are_named():
    (problem,) = check(read(making.fattura(bodies=3).encode()))

    assert problem.code == "several_invoices"
    assert "holds 3 invoices" in problem.message


def test_a_broken_file_has_a_bounded_number_of_problems():
    line = making._cii_line(1, "", "", "x", "", "", "19.00")
    xml = making.cii().replace(
        "<ram:ApplicableHeaderTradeAgreement>", line * 500 + "<ram:ApplicableHeaderTradeAgreement>"
    )

    assert len(check(read(xml.encode()))) == 50
