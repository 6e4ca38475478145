"""Recognises the fields, the type and the line items of a document from the words of its pages and their places."""

from ade_understanding.recognition.document import Understanding, recognise
from ade_understanding.recognition.page import shows_signs

__all__ = ["Understanding", "recognise", "shows_signs"]
