"""The operations that people perform on documents: see `work/operations/previews.py`."""

from documents import reprocessing
from work.operations.previews import Operation

REPROCESS = Operation("reprocess", "Process again", reprocessing.reprocess, reprocessing.preview, knows_bulk=True)
