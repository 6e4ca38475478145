"""E-invoices: reads their XML, checks it, and compares it with the pages.

`reading.read` gives an `Invoice` of any syntax. `understand` turns it into fields, tables, a type and problems.
"""
