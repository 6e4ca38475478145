import os

from work.processes import sandbox

if shown := os.environ.get("ADE_TEST_SHOWN"):
    # The directory with the socket of the witness: see tests/engines.py.
    sandbox.SETTINGS = (*sandbox.SETTINGS, shown)
