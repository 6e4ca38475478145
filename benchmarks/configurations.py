"""The configurations that the engines of the benchmark run: the requirements and the `main.py` of each."""

# Imports nothing and does nothing, so that the measurement shows the overhead of ADE around a step.
NOTHING = """
from ade_engine import step

@step
def nothing(context):
    pass
"""

# The first statement of the step records the moment, by the clock that all processes of a machine share.
STATEMENT = """
import time
from ade_engine import step

@step
def statement(context):
    context.field("at", time.monotonic_ns())
"""

# The document's text is a duration in seconds.
SLEEP = """
import time
from ade_engine import step

@step
def sleep(context):
    time.sleep(float(context.document.text or 0))
"""

# Writes each line separately, until the number of bytes in the document's text is reached.
PRINT = """
from ade_engine import step

LINE = "x" * 1023

@step
def flood(context):
    for _ in range(int(context.document.text) // 1024):
        print(LINE)
"""

# The document's text is a duration in seconds, and the share of it that is spent computing.
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
# For machines without a package index: standard library modules that take long to import.
INSTEAD_OF_HEAVY = ("asyncio", "xml.dom.minidom")


def sources(heavy: tuple[str, ...]) -> dict[str, tuple[str, str]]:
    """Return requirements and main.py by name."""
    requirements = "\n".join(heavy) if heavy == HEAVY else ""
    return {
        "nothing": ("", NOTHING),
        "heavy": (requirements, f"import {', '.join(heavy)}\n{NOTHING}"),
        "statement": ("", STATEMENT),
        "sleep": ("", SLEEP),
        "print": ("", PRINT),
        "silent": ("", SILENT),
    }
