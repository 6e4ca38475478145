"""Draws invoices, receipts and other papers as words with places, in eight languages and many layouts.

The wording is not taken from the recogniser's own lists, and some labels are missing there on purpose.
"""
