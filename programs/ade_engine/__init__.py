"""The API for writing configurations: `from ade_engine import Context, Rejected, step`.

It runs inside the environment of a build, on Python 3.11 or later, and uses only the standard library.
"""

from ade_engine.context import Context, Document
from ade_engine.steps import Rejected, step

__all__ = ["Context", "Document", "Rejected", "step"]
