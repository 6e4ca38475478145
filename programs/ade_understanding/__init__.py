"""Understands documents: their type, fields, tables and e-invoices. Used in the reader's process, without Django.

The values of fields are texts: dates as ISO 8601, amounts as `1511.30 EUR`, IBANs and VAT ids without spaces.
"""
