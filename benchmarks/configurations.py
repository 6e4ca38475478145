"""What the engines of the benchmark run: for each configuration its requirements and its `main.py`."""

# Nothing is imported and nothing is done: measured is what ADE does around a step.
NOTHING = """
from ade_engine import step

@step
def nothing(context):
    pass
"""

# The first statement of the step says when it was reached, by the clock that all processes of a machine share.
STATEMENT = """
import time
from ade_engine import step

@step
def statement(context):
    context.field("at", time.monotonic_ns())
"""

# The document's text is a time in seconds.
SLEEP = """
import time
from ade_engine import step

@step
def sleep(context):
    time.sleep(float(context.document.text or 0))
"""

# Lines, each written by itself, as many as make the number of bytes that is the document's text.
PRINT = """
from ade_engine import step

LINE = "x" * 1023

@step
def flood(context):
    for _ in range(int(context.document.text) // 1024):
        print(LINE)
"""

# The document's text is a time in seconds, and the share of it in which to compute.
SILENT = """
import time
from ade_engine import step

TURN_SECONDS = 0.01

@step
def silent(context):
    seconds, share = map(float, context.document.text.split())
    until = time.monotonic() + seconds
    while (now := time.monotonic()) < until:
        while time.monotonic() < now + share * TURN_SECONDS:
            pass
        time.sleep((1 - share) * TURN_SECONDS)
"""

HEAVY = ("numpy", "pypdfium2")
# Where no index may be asked: something of Python's own that takes long to import.
INSTEAD_OF_HEAVY = ("asyncio", "xml.dom.minidom")


def sources(heavy: tuple[str, ...]) -> dict[str, tuple[str, str]]:
    """By name: requirements and main.py."""
    requirements = "\n".join(heavy) if heavy == HEAVY else ""
    return {
        "nothing": ("", NOTHING),
        "heavy": (requirements, f"import {', '.join(heavy)}\n{NOTHING}"),
        "statement": ("", STATEMENT),
        "sleep": ("", SLEEP),
        "print": ("", PRINT),
        "silent": ("", SILENT),
    }
