"""The configurations that the benchmark's engines run, each with requirements and `main.py`."""

# A step that imports and does nothing, so that the measurement shows ADE's overhead.
NOTHING = """
from ade_engine import step

@step
def nothing(context):
    pass
"""

# The step's first statement records the moment, by the clock that all processes of a machine share.
STATEMENT = """
import time
from ade_engine import step

@step
def statement(context):
    context.field("at", time.monotonic_ns())
"""

# A step that sleeps. The document's text is the duration in seconds.
SLEEP = """
import time
from ade_engine import step

@step
def sleep(context):
    time.sleep(float(context.document.text or 0))
"""

# A step that prints as many bytes as the document's text says, each line with its own write.
PRINT = """
from ade_engine import step

LINE = "x" * 1023

@step
def flood(context):
    for _ in range(int(context.document.text) // 1024):
        print(LINE)
"""

# A step that prints nothing. The document's text is a duration in seconds, and the share of it that is spent computing.
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
# Standard library modules that take long to import, for machines without a package index.
INSTEAD_OF_HEAVY = ("asyncio", "xml.dom.minidom")


def sources(heavy: tuple[str, ...]) -> dict[str, tuple[str, str]]:
    """Return the requirements and `main.py` of each configuration by name."""
    requirements = "\n".join(heavy) if heavy == HEAVY else ""
    return {
        "nothing": ("", NOTHING),
        "heavy": (requirements, f"import {', '.join(heavy)}\n{NOTHING}"),
        "statement": ("", STATEMENT),
        "sleep": ("", SLEEP),
        "print": ("", PRINT),
        "silent": ("", SILENT),
    }
