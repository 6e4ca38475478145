"""The API that a configuration is written with: `from ade_engine import Context, Rejected, step`.

It runs inside the environment of a build, on any Python from 3.11, and uses the standard library only.
"""

from ade_engine.context import Context, Document
from ade_engine.steps import Rejected, step

__all__ = ["Context", "Document", "Rejected", "step"]
