import sys
from pathlib import Path

VERSION = "0.2.0"
# Each program is imported by its own name, in the process that it gets and here.
PROGRAMS = Path(__file__).resolve().parent.parent / "programs"

if str(PROGRAMS) not in sys.path:
    sys.path.append(str(PROGRAMS))
