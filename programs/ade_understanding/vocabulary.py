"""The names of the fields that ADE recognises, each with the kind of its values."""

FIELDS = {
    "invoice_number": "number",
    "order_number": "number",
    "customer_number": "number",
    "contract_number": "number",
    "delivery_note_number": "number",
    "date": "date",
    "invoice_date": "date",
    "due_date": "date",
    "delivery_date": "date",
    "order_date": "date",
    "period_start": "date",
    "period_end": "date",
    "seller": "text",
    "seller_address": "text",
    "vat_id": "vat_id",
    "tax_number": "number",
    "buyer": "text",
    "buyer_address": "text",
    "buyer_vat_id": "vat_id",
    "iban": "iban",
    "bic": "number",
    "payment_terms": "text",
    "currency": "text",
    "net_total": "amount",
    "tax_total": "amount",
    "gross_total": "amount",
    "prepaid_amount": "amount",
    "due_amount": "amount",
    "email": "email",
    "phone": "phone",
    "fax": "phone",
}

# What only e-invoices give.
OF_E_INVOICES = {
    "profile": "text",
    "business_process": "text",
    "note": "text",
    "tax_date": "date",
    "tax_currency": "text",
    "buyer_reference": "number",
    "project_number": "number",
    "sales_order_number": "number",
    "receiving_advice_number": "number",
    "tender_number": "number",
    "object_number": "number",
    "accounting_reference": "text",
    "preceding_invoice_number": "number",
    "preceding_invoice_date": "date",
    "seller_trading_name": "text",
    "seller_id": "number",
    "seller_global_id": "number",
    "seller_registration": "number",
    "seller_legal_information": "text",
    "seller_electronic_address": "text",
    "seller_contact": "text",
    "buyer_trading_name": "text",
    "buyer_global_id": "number",
    "buyer_registration": "number",
    "buyer_tax_number": "number",
    "buyer_electronic_address": "text",
    "buyer_contact": "text",
    "buyer_phone": "phone",
    "buyer_email": "email",
    "payee": "text",
    "payee_id": "number",
    "tax_representative": "text",
    "tax_representative_address": "text",
    "tax_representative_vat_id": "vat_id",
    "recipient": "text",
    "recipient_id": "number",
    "recipient_address": "text",
    "payment_means": "text",
    "payment_reference": "text",
    "account_name": "text",
    "account_number": "number",
    "card_number": "number",
    "mandate_reference": "number",
    "creditor_id": "number",
    "debited_iban": "iban",
    "line_total": "amount",
    "allowance_total": "amount",
    "charge_total": "amount",
    "tax_total_in_tax_currency": "amount",
    "rounding_amount": "amount",
}

# The net amount and the tax of each rate: `tax_base_19` and `tax_amount_19`, or `tax_amount_7_7` for 7.7 percent.
TAX_BASE, TAX_AMOUNT = "tax_base_", "tax_amount_"

# The columns of the table of line items, each with the kind of its values.
LINE_ITEMS = "line_items"
LINE_COLUMNS = {
    "position": "text",
    "article": "text",
    "description": "text",
    "quantity": "decimal",
    "unit": "text",
    "unit_price": "amount",
    "tax_rate": "decimal",
    "amount": "amount",
}

_ABBREVIATIONS = {"bic": "BIC", "iban": "IBAN", "vat": "VAT"}


def label_of(name: str) -> str:
    """Return how people read the name of a field, such as "VAT id" or "Tax amount 7.7 %".

    Names that ADE does not know were chosen by people or printed on the page, and stay as they are.
    """
    prefix = next((each for each in (TAX_BASE, TAX_AMOUNT) if name.startswith(each)), "")
    if not prefix and name not in FIELDS and name not in OF_E_INVOICES:
        return name
    plain = prefix.strip("_") if prefix else name
    words = [_ABBREVIATIONS.get(word, word) for word in plain.split("_")]
    rate = f" {name.removeprefix(prefix).replace('_', '.')} %" if prefix else ""
    text = " ".join(words) + rate
    return text[:1].upper() + text[1:]


def rate_name(prefix: str, rate: str) -> str:
    """Return the field name of a tax rate such as "19" or "7.70"."""
    whole, _, decimals = rate.partition(".")
    decimals = decimals.rstrip("0")
    return f"{prefix}{whole}_{decimals}" if decimals else f"{prefix}{whole}"
